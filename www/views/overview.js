// @ts-check
/**
 * The first tab: the run or its result, then the sample as the model receives it, and the model
 * details.
 */

import { h } from '../dom.js';
import { done } from '../state.js';
import { samplePreview } from './data.js';
import { modelCard, wantedFiles } from './model.js';
import { preflight } from './preflight.js';
import { resultPanel } from './result.js';
import { progressPanel } from './run.js';

/** @param {{ readonly value: string }} phase */
export function overview(phase) {
  return h('div', { class: 'stack' },
    h('div', {}, () => {
      if (phase.value === 'running') return progressPanel();
      return phase.value === 'done' && done.value ? resultPanel(done.value) : null;
    }),
    h('div', { class: 'stack', hidden: () => phase.value === 'running' }, () => wantedFiles(), () => phase.value !== 'done' && preflight(), samplePreview(), () => modelCard()),
  );
}
