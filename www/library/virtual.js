// @ts-check
/**
 * A virtual table: only the visible rows are in the page. All rows have one height, so the scroll
 * position alone determines the visible ones. `aria-rowcount` and `aria-rowindex` describe the
 * others.
 *
 * Rows that are drawn again keep each cell that has the same HTML, with its focus or open menu. So
 * listeners of a cell may only use what its attributes say, and cells have no live parts.
 */

import { h } from './dom.js';
import { keepFocus } from './focus.js';
import { effect } from './signals.js';

/** The height of a row in pixels, as in the style sheet. */
export const rowHeight = 36;
/** Number of extra rows above and below. */
const spare = 5;

/**
 * Makes an element equal to a new one. Children that are equal at the start and at the end stay.
 *
 * @param {Element} element
 * @param {Element} fresh
 */
function update(element, fresh) {
  for (const { name } of [...element.attributes]) if (!fresh.hasAttribute(name)) element.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  const [old, next] = [[...element.children], [...fresh.children]];
  let start = 0;
  while (start < Math.min(old.length, next.length) && old[start].isEqualNode(next[start])) start += 1;
  let end = 0;
  while (end < Math.min(old.length, next.length) - start && old[old.length - 1 - end].isEqualNode(next[next.length - 1 - end])) end += 1;
  // Between them, cells change one by one.
  const most = Math.min(old.length, next.length) - start - end;
  arrange(element, [
    ...old.slice(0, start),
    ...next.slice(start, next.length - end).map((cell, index) => (index < most && cell.isEqualNode(old[start + index]) ? old[start + index] : cell)),
    ...old.slice(old.length - end),
  ]);
}

/** @template {Element} E @param {E | undefined} old @param {E} fresh */
function redrawn(old, fresh) {
  if (old) update(old, fresh);
  return old ?? fresh;
}

/**
 * Gives an element these children; those that it has already are not taken out.
 *
 * @param {Element} element
 * @param {Element[]} children
 */
function arrange(element, children) {
  const wanted = new Set(children);
  for (const child of [...element.children]) if (!wanted.has(child)) child.remove();
  let at = element.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else element.insertBefore(child, at);
  }
}

/**
 * @template T
 * @param {object} options
 * @param {string} options.label
 * @param {() => { head: Element, widths: number[] }} options.columns the heading row, and the width of each column in rem
 * @param {() => T[]} options.rows read live
 * @param {(row: T, index: number) => HTMLTableRowElement} options.draw
 * @param {(row: T) => string} options.key what a row is found again by
 * @param {() => Node} options.empty
 */
export function virtual({ label, columns, rows, draw, key, empty }) {
  const head = h('thead');
  const body = h('tbody');
  const group = h('colgroup');
  const table = h('table', { class: 'virtual', 'aria-label': label }, group, head, body);
  const none = h('div', { class: 'none' });
  const box = h('div', { class: 'scroll long-table', tabindex: 0, role: 'region', 'aria-label': `${label}, scrolled` }, table, none);
  /** @type {T[]} */
  let list = [];
  let from = -1;
  let to = -1;
  /** @type {Map<number, { key: string, element: HTMLTableRowElement }>} the rows that are in the page, by their place in the list */
  let inSight = new Map();

  /** A placeholder for the rows above or below. @param {number} height */
  const gap = (height) => h('tr', { class: 'gap-row', 'aria-hidden': 'true' }, h('td', { colspan: 99 }, sized(h('div'), height)));
  /** @param {HTMLElement} element @param {number} height set by script: the policy forbids style attributes, not this */
  function sized(element, height) {
    element.style.height = `${height}px`;
    return element;
  }

  /** @param {boolean} anew */
  function show(anew) {
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - spare);
    const last = Math.min(list.length, Math.ceil((box.scrollTop + (box.clientHeight || 600)) / rowHeight) + spare);
    if (!anew && first === from && last === to) return;
    [from, to] = [first, last];
    keepFocus(body);
    const before = inSight;
    const byKey = new Map([...before.values()].map((one) => [one.key, one.element]));
    inSight = new Map();
    const drawn = list.slice(first, last).map((row, index) => {
      const at = first + index;
      const old = anew ? byKey.get(key(row)) : before.get(at)?.element;
      byKey.delete(key(row));
      // While scrolling, visible rows are reused as they are.
      const element = old && !anew ? old : redrawn(old, draw(row, at));
      element.setAttribute('aria-rowindex', String(at + 2));
      inSight.set(at, { key: key(row), element });
      return element;
    });
    arrange(body, [
      ...(first > 0 ? [gap(first * rowHeight)] : []), ...drawn, ...(last < list.length ? [gap((list.length - last) * rowHeight)] : []),
    ]);
  }

  let waiting = false;
  box.addEventListener('scroll', () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      show(false);
    });
  });
  new ResizeObserver(() => show(false)).observe(box);

  effect(() => {
    const { head: row, widths } = columns();
    keepFocus(head);
    if (head.firstElementChild) update(head.firstElementChild, row);
    else head.append(row);
    group.replaceChildren(...widths.map((rem) => {
      const column = h('col');
      column.style.width = `${rem}rem`;
      return column;
    }));
    table.style.width = `${widths.reduce((sum, rem) => sum + rem, 0)}rem`;
  });
  effect(() => {
    list = rows();
    table.setAttribute('aria-rowcount', String(list.length + 1));
    none.replaceChildren(...(list.length === 0 ? [empty()] : []));
    show(true);
  });

  return {
    element: box,
    /** Scrolls a row into view. @param {number} index */
    reveal(index) {
      const top = index * rowHeight;
      const view = box.clientHeight - head.clientHeight;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top + rowHeight > box.scrollTop + view) box.scrollTop = top + rowHeight - view;
      show(false);
    },
  };
}
