// @ts-check
/**
 * Tabs with keyboard support: arrows, Home and End move, Tab enters the panel. A panel is built,
 * and its code loaded, when it is first shown.
 */

import { h } from './dom.js';
import { effect } from './signals.js';

/**
 * @template {string} K
 * @param {string} label
 * @param {import('./signals.js').Signal<K>} chosen
 * @param {[K, string, () => Node | Promise<Node>][]} list key, name, panel
 */
export function tabs(label, chosen, list) {
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const at = list.findIndex(([key]) => key === chosen.peek());
    /** @type {Record<string, number>} */
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: list.length - 1 };
    if (!(event.key in to)) return;
    event.preventDefault();
    const [key] = list[(to[event.key] + list.length) % list.length];
    chosen.value = key;
    document.getElementById(`tab-${key}`)?.focus();
  };
  const buttons = list.map(([key, name]) => h('button', {
    type: 'button', role: 'tab', id: `tab-${key}`, class: 'tab', 'aria-controls': `panel-${key}`,
    'aria-selected': () => String(chosen.value === key), tabindex: () => (chosen.value === key ? 0 : -1),
    onclick: () => (chosen.value = key),
  }, name));
  // The selected tab scrolls into view if the tabs overflow.
  effect(() => {
    const button = buttons[list.findIndex(([key]) => key === chosen.value)];
    queueMicrotask(() => button?.scrollIntoView({ block: 'nearest', inline: 'nearest' }));
  });
  const panels = list.map(([key, , build]) => {
    const panel = h('div', { role: 'tabpanel', id: `panel-${key}`, class: 'tabpanel', 'aria-labelledby': `tab-${key}`, tabindex: 0, hidden: () => chosen.value !== key });
    return builtWhenShown(panel, () => chosen.value === key, build);
  });
  return [h('div', { role: 'tablist', class: 'tabs', 'aria-label': label, onkeydown: move }, ...buttons), ...panels];
}

/**
 * Fills a panel when it is first shown.
 *
 * @param {HTMLElement} panel
 * @param {() => boolean} shown
 * @param {() => Node | Promise<Node>} build
 */
export function builtWhenShown(panel, shown, build) {
  let built = false;
  const show = async () => {
    try {
      panel.replaceChildren(await build());
    } catch (error) {
      built = false;
      panel.replaceChildren(h('p', { class: 'callout bad', role: 'alert' }, `This view could not be loaded (${/** @type {Error} */ (error).message}). Check the connection, then open the tab again.`));
    }
  };
  effect(() => {
    if (!shown() || built) return;
    built = true;
    // Outside of this effect, as its next run would end the live parts of the panel.
    queueMicrotask(() => void show());
  });
  return panel;
}
