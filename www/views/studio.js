// @ts-check
/** The whole below the header: the way in while there is no model, then the panels and what they lead to. */

import { h } from '../dom.js';
import { computed, effect, untracked } from '../signals.js';
import { problem } from '../messages.js';
import { done, model, opening, run } from '../state.js';
import { welcome } from './welcome.js';
import { modelPanel, modelCard, wantedFiles } from './model.js';
import { dataPanel, samplePreview } from './data.js';
import { settingsPanel } from './settings.js';
import { progressPanel, openingPanel, runPanel } from './run.js';
import { resultPanel } from './result.js';
import { problemPanel } from './problem.js';

class Studio extends HTMLElement {
  connectedCallback() {
    const hasModel = computed(() => model.value !== null);
    const isOpening = computed(() => opening.value !== null);
    const phase = computed(() => (run.value ? 'running' : done.value ? 'done' : 'ready'));
    this.replaceChildren(
      h('div', { class: 'problems' }, () => problem.value && problemPanel(problem.value)),
      h('div', {}, () => {
        if (!hasModel.value) return isOpening.value ? openingPanel() : welcome();
        return untracked(() => h('div', { class: 'studio' },
          h('div', { class: 'side' }, modelPanel(), dataPanel(), settingsPanel(), runPanel()),
          h('div', { class: 'centre' },
            h('div', {}, () => isOpening.value && openingPanel()),
            h('div', {}, () => {
              if (phase.value === 'running') return progressPanel();
              if (phase.value === 'done' && done.value) return resultPanel(done.value);
              return null;
            }),
            h('div', { class: 'stack', hidden: () => phase.value === 'running' }, () => wantedFiles(), samplePreview(), () => modelCard()),
          ),
        ));
      }),
    );
    // Focus follows what happened, so that a keyboard or a screen reader is never left on a button that is gone.
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
      const target = targets[now];
      if (before !== '' && target) go(target);
      before = now;
    });
  }
}

customElements.define('octet-studio', Studio);
