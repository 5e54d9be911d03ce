// @ts-check
/** Tables and lists of facts. */

import { h } from './dom.js';

/** @param {string} name @param {import('./dom.js').Leaf} value */
export function fact(name, value) {
  return [h('div', {}, h('dt', {}, name), h('dd', {}, value))];
}

/**
 * @param {string[]} head
 * @param {import('./dom.js').Leaf[][]} rows
 * @param {number[]} [numbers] the columns that hold numbers
 */
export function table(head, rows, numbers = []) {
  /** @param {number} column */
  const kind = (column) => (numbers.includes(column) ? 'figure' : null);
  // Focusable, so that a keyboard can scroll a wide table.
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Table: ${head.filter(Boolean).join(', ')}` },
    h('table', {},
      h('thead', {}, h('tr', {}, ...head.map((text, column) => h('th', { scope: 'col', class: kind(column) }, text || h('span', { class: 'unseen' }, 'Direction'))))),
      h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map((cell, column) => h('td', { class: kind(column) }, cell))))),
    ),
  );
}
