// @ts-check
/**
 * Everything below the header: the welcome view without a model, otherwise the regions of the
 * studio.
 */

import { h } from '../dom.js';
import { computed, effect, signal, untracked } from '../signals.js';
import { problem } from '../messages.js';
import { done, model, opening, run, selected, tab } from '../state.js';
import { welcome } from './welcome.js';
import { modelPanel } from './model.js';
import { dataPanel } from './data.js';
import { settingsPanel } from './settings.js';
import { openingPanel, runPanel } from './run.js';
import { overview } from './overview.js';
import { layersView } from './layers.js';
import { inspector } from './inspector.js';
import { problemPanel } from './problem.js';
import { foot } from './status-bar.js';
import { tabs } from './tabs.js';

class Studio extends HTMLElement {
  connectedCallback() {
    const hasModel = computed(() => model.value !== null);
    const isOpening = computed(() => opening.value !== null);
    const phase = computed(() => (run.value && !run.value.quick ? 'running' : done.value ? 'done' : 'ready'));
    this.replaceChildren(
      h('div', { class: 'problems' }, () => problem.value && problemPanel(problem.value)),
      h('div', { class: 'whole' }, () => {
        if (!hasModel.value) return isOpening.value ? [h('h1', { class: 'unseen' }, 'Opening a model'), openingPanel()] : welcome();
        return untracked(() => regions(isOpening, phase));
      }),
    );
    // Focus follows the state, so that it is never left on a removed button.
    /** @param {string} selector */
    const go = (selector) => queueMicrotask(() => /** @type {HTMLElement | null} */ (this.querySelector(selector))?.focus());
    let before = '';
    effect(() => {
      const now = problem.value ? 'problem' : isOpening.value ? 'opening' : hasModel.value ? phase.value : 'empty';
      if (now === before) return;
      /** @type {Record<string, string>} */
      const targets = {
        problem: '[data-focus=problem]', opening: '[data-focus=opening]', running: '[data-focus=running]', done: '[data-focus=done]',
        ready: before === 'running' ? '#run' : '[data-focus=ready]',
      };
      // A new run or model is shown on the overview.
      if (now === 'running' || now === 'opening') tab.value = 'overview';
      const target = targets[now];
      if (before !== '' && target) go(target);
      before = now;
    });
  }
}

/** @param {{ readonly value: boolean }} isOpening @param {{ readonly value: string }} phase */
function regions(isOpening, phase) {
  /** True if the left region is open on narrow screens. */
  const sheet = signal(false);
  const toggle = h('button', {
    type: 'button', class: 'sheet-toggle', 'aria-controls': 'left', 'aria-expanded': () => String(sheet.value), onclick: () => (sheet.value = !sheet.peek()),
  }, () => (sheet.value ? 'Close model, data and settings' : 'Model, data and settings'));
  /** @param {KeyboardEvent} event */
  const escape = (event) => {
    if (event.key !== 'Escape' || !sheet.peek()) return;
    event.preventDefault();
    sheet.value = false;
    toggle.focus();
  };
  effect(() => {
    if (phase.value === 'running') sheet.value = false;
  });
  return h('div', { class: () => `studio phase-${phase.value}`, 'data-tab': () => tab.value },
    h('h1', { class: 'unseen' }, () => `${model.value?.name ?? ''} in the studio`),
    h('div', { class: 'side' },
      toggle,
      h('div', { class: 'sheet-body', id: 'left', 'data-open': () => sheet.value, onkeydown: escape }, modelPanel(), dataPanel(), settingsPanel()),
      runPanel(),
    ),
    h('div', { class: 'centre' },
      h('div', {}, () => isOpening.value && openingPanel()),
      ...tabs('Views', tab, [
        ['overview', 'Overview', () => overview(phase)],
        ['layers', 'Layers', layersView],
        ['graph', 'Graph', async () => (await import('./graph.js')).graphView()],
        ['timeline', 'Timeline', async () => (await import('./timeline.js')).timelineView()],
        ['compare', 'Compare', async () => (await import('./compare.js')).compareView()],
      ]),
    ),
    h('aside', { class: 'right', 'aria-label': 'The selected layer', hidden: () => selected.value === '' || !['layers', 'graph'].includes(tab.value) }, inspector()),
    foot(),
  );
}

customElements.define('octet-studio', Studio);
