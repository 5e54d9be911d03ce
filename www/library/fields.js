// @ts-check
/** Fields of forms. */

import { h } from './dom.js';
import { computed, effect, untracked } from './signals.js';

/**
 * A menu. Its options are replaced only if their texts change, so figures that arrive leave an open
 * menu alone.
 *
 * @param {Record<string, unknown>} attributes
 * @param {() => string} value
 * @param {string[][] | (() => string[][])} options keys and texts
 * @param {(value: string) => void} change
 */
export function menu(attributes, value, options, change) {
  const select = h('select', { ...attributes, onchange: () => change(select.value) });
  const listed = computed(() => JSON.stringify(typeof options === 'function' ? options() : options));
  effect(() => {
    /** @type {string[][]} */
    const list = JSON.parse(listed.value);
    select.replaceChildren(...list.map(([key, text]) => h('option', { value: key }, text)));
    select.value = untracked(value);
  });
  effect(() => {
    select.value = value();
  });
  return select;
}

/**
 * A labelled menu.
 *
 * @param {string} label
 * @param {string} id
 * @param {() => string} value
 * @param {string[][] | (() => string[][])} options
 * @param {(value: string) => void} change
 */
export function choice(label, id, value, options, change) {
  return h('label', { class: 'field' }, h('span', {}, label), menu({ id }, value, options, change));
}
