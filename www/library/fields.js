// @ts-check
/** Fields of forms. */

import { h } from './dom.js';

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
  const list = () => (typeof options === 'function' ? options() : options).map(([key, text]) => h('option', { value: key }, text));
  return h('label', { class: 'field' }, h('span', {}, label),
    h('select', { id, value: value, onchange: (/** @type {Event} */ event) => change(/** @type {HTMLSelectElement} */ (event.target).value) }, ...(typeof options === 'function' ? [list] : list())));
}
