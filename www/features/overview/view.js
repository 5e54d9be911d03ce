// @ts-check
/**
 * The first tab: the run or its result, then the sample as the model receives it, and the model
 * details.
 */

import { h } from '../../library/dom.js';
import { done, phase } from '../../state/page.js';
import { samplePreview } from '../data/view.js';
import { modelCard, wantedFiles } from '../model/view.js';
import { resultPanel } from '../result/view.js';
import { preflight } from '../run/preflight.js';
import { progressPanel } from '../run/view.js';

export function view() {
  return h('div', { class: 'stack' },
    h('div', {}, () => {
      if (phase.value === 'running') return progressPanel();
      return phase.value === 'done' && done.value ? resultPanel(done.value) : null;
    }),
    h('div', { class: 'stack', hidden: () => phase.value === 'running' }, () => wantedFiles(), () => phase.value !== 'done' && preflight(), samplePreview(), () => modelCard()),
  );
}
