// @ts-check
/**
 * The first tab: the run or its result, then the sample as the model receives it, and the model
 * details.
 */

import { h } from '../../library/dom.js';
import { keepFocus } from '../../library/focus.js';
import { done, phase } from '../../state/page.js';
import { samplePreview } from '../data/view.js';
import { modelCard, wantedFiles } from '../model/view.js';
import { resultPanel } from '../result/view.js';
import { preflight } from '../run/preflight.js';
import { progressPanel } from '../run/view.js';

export function view() {
  /** @type {HTMLElement | undefined} */
  let main;
  main = h('div', {}, () => {
    if (phase.value === 'running') return progressPanel();
    // A step that was taken in the old result leads to the heading of the new one.
    keepFocus(main, '[data-focus=done]');
    return phase.value === 'done' && done.value ? resultPanel(done.value) : null;
  });
  return h('div', { class: 'stack' },
    main,
    h('div', { class: 'stack', hidden: () => phase.value === 'running' }, () => wantedFiles(), () => phase.value !== 'done' && preflight(), samplePreview(), () => modelCard()),
  );
}
