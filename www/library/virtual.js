// @ts-check
/**
 * A virtual table: only the visible rows are in the page. All rows have one height, so the scroll
 * position alone determines the visible ones. `aria-rowcount` and `aria-rowindex` describe the
 * others.
 */

import { h } from './dom.js';
import { effect } from './signals.js';

/** The height of a row in pixels, as in the style sheet. */
export const rowHeight = 36;
/** Number of extra rows above and below. */
const spare = 5;

/**
 * @template T
 * @param {object} options
 * @param {string} options.label
 * @param {() => { head: Node, widths: number[] }} options.columns the heading row, and the width of each column in rem
 * @param {() => T[]} options.rows read live
 * @param {(row: T, index: number) => HTMLTableRowElement} options.draw
 * @param {() => Node} options.empty
 */
export function virtual({ label, columns, rows, draw, empty }) {
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
  /** @type {Map<number, HTMLTableRowElement>} the rows that are in the page, by their place in the list */
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
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    const key = body.contains(focused) ? focused?.dataset.key : undefined;
    // While scrolling, visible rows are reused.
    const before = anew ? new Map() : inSight;
    inSight = new Map();
    const drawn = list.slice(first, last).map((row, index) => {
      const at = first + index;
      const element = before.get(at) ?? draw(row, at);
      element.setAttribute('aria-rowindex', String(at + 2));
      inSight.set(at, element);
      return element;
    });
    body.replaceChildren(
      ...(first > 0 ? [gap(first * rowHeight)] : []), ...drawn, ...(last < list.length ? [gap((list.length - last) * rowHeight)] : []),
    );
    // Restores the focus after its element was drawn again.
    if (key) /** @type {HTMLElement | null} */ (body.querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus({ preventScroll: true });
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
    head.replaceChildren(row);
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
