// @ts-check
/**
 * Everything below the header: the welcome view without a model, otherwise the regions of the
 * studio.
 */

import { h } from '../library/dom.js';
import { computed, effect, signal, untracked } from '../library/signals.js';
import { builtWhenShown, tabs } from '../library/tabs.js';
import { problem } from '../state/messages.js';
import { large, model, opening, phase, selected, tab } from '../state/page.js';
import { readOnly, shownPanels } from '../state/surroundings.js';
import { openingPanel } from '../features/model/opening.js';
import { problemPanel } from '../features/status/problem.js';
import { at, loadAtStart, panel, panels } from './panels.js';

class Studio extends HTMLElement {
  connectedCallback() {
    const hasModel = computed(() => model.value !== null);
    const isOpening = computed(() => opening.value !== null);
    const isLarge = computed(() => large.value !== null && !isOpening.value);
    this.replaceChildren(
      h('div', { class: 'problems' }, () => problem.value && problemPanel(problem.value)),
      builtWhenShown(h('div', { class: 'whole', hidden: () => !isLarge.value }), () => isLarge.value, () => panel(at('large')[0])),
      h('div', { class: 'whole', hidden: () => isLarge.value }, () => {
        // Another choice of panels builds the regions anew.
        void shownPanels.value;
        if (!hasModel.value) return isOpening.value ? [h('h1', { class: 'unseen' }, 'Opening a model'), openingPanel()] : welcome();
        return untracked(() => regions(isOpening));
      }),
    );
    // Focus follows the state, so that it is never left on a removed button.
    /** @param {string} selector */
    const go = (selector) => queueMicrotask(() => /** @type {HTMLElement | null} */ (this.querySelector(selector))?.focus());
    let before = '';
    effect(() => {
      const now = problem.value ? 'problem' : isOpening.value ? 'opening' : large.value ? 'large' : hasModel.value ? phase.value : 'empty';
      if (now === before) return;
      /** @type {Record<string, string>} */
      const targets = {
        problem: '[data-focus=problem]', opening: '[data-focus=opening]', large: '[data-focus=large]', running: '[data-focus=running]', done: '[data-focus=done]',
        ready: before === 'running' ? '#run' : '[data-focus=ready]',
      };
      // A new run or model is shown on the overview.
      if ((now === 'running' || now === 'opening') && at('tab').some(({ name }) => name === 'overview')) tab.value = 'overview';
      const target = targets[now];
      if (before !== '' && target) go(target);
      before = now;
    });
  }
}

/** Without a model: the search of a hub, if this page has one, and the welcome. In a read-only studio its page opens the models. */
function welcome() {
  if (readOnly.value) return h('p', { class: 'boot' }, 'No model is open yet. The page around opens it.');
  const hubs = at('tab').filter(({ onHub }) => onHub);
  return [...hubs.map((feature) => builtWhenShown(h('div', { class: 'hub-place' }), () => true, () => panel(feature))), ...panels('welcome')];
}

/** The panels of the sidebar in words. */
function sideTitle() {
  const titles = at('side').map(({ title = '' }, index) => (index === 0 ? title : title.toLowerCase()));
  return new Intl.ListFormat('en-GB').format(titles);
}

/** @param {{ readonly value: boolean }} isOpening */
function regions(isOpening) {
  const titles = sideTitle();
  const hasSide = at('side').length + at('run').length > 0;
  const tabsShown = at('tab');
  if (!tabsShown.some(({ name }) => name === tab.peek())) tab.value = tabsShown[0]?.name ?? '';
  /** True if the left region is open on narrow screens. */
  const sheet = signal(false);
  const toggle = h('button', {
    type: 'button', class: 'sheet-toggle', 'aria-controls': 'left', 'aria-expanded': () => String(sheet.value), onclick: () => (sheet.value = !sheet.peek()),
  }, () => (sheet.value ? `Close ${titles.toLowerCase()}` : titles));
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
  /** True if the open tab can select a layer. */
  const selects = computed(() => at('tab').some(({ name, selects: can }) => can && name === tab.value));
  return h('div', { class: () => `studio phase-${phase.value}${hasSide ? '' : ' without-side'}`, 'data-tab': () => tab.value },
    h('h1', { class: 'unseen' }, () => `${model.value?.name ?? ''} in the studio`),
    hasSide && h('div', { class: 'side' },
      at('side').length > 0 && toggle,
      // A read-only studio shows the controls of its files and settings, disabled.
      h('fieldset', { class: 'sheet-body', id: 'left', 'data-open': () => sheet.value, disabled: () => readOnly.value, onkeydown: escape }, ...panels('side')),
      ...panels('run'),
    ),
    h('div', { class: 'centre' },
      h('div', {}, () => isOpening.value && openingPanel()),
      ...tabs('Views', tab, tabsShown.map((feature) => [feature.name, feature.title ?? feature.name, () => panel(feature)])),
    ),
    ...at('aside').map((feature) => builtWhenShown(
      h('aside', { class: 'right', 'aria-label': 'The selected layer', hidden: () => selected.value === '' || !selects.value }), () => selects.value, () => panel(feature))),
    ...panels('foot'),
  );
}

await loadAtStart();
customElements.define('octet-studio', Studio);
