// @ts-check
/**
 * The table of layers: sortable, filterable, grouped, with a choice of columns and controls for
 * each layer.
 */

import { h } from '../../library/dom.js';
import { save } from '../../library/download.js';
import { menu } from '../../library/fields.js';
import { bytes, count, plural, real } from '../../library/format.js';
import { batch, computed, effect, signal } from '../../library/signals.js';
import { virtual } from '../../library/virtual.js';
import { floatGraph, needGraphs } from '../../state/graphs.js';
import { done, model, run, selected } from '../../state/page.js';
import { readOnly, settingsLocked } from '../../state/surroundings.js';
import { worksOn } from '../settings/scheme-words.js';
import { redoable, undoable } from '../settings/state.js';
import { redo, undo } from '../settings/undo.js';
import { keepFloat, methodChoice, sixteenBits } from './actions.js';
import { arranged, columns, csv, rows } from './rows.js';
import { runHistoryPanel } from './run-history.js';

/** @import { Column, Order, Row } from './rows.js' */
/** @typedef {{ group: string, rows: number, integers: number }} Group */

/** @type {import('../../library/signals.js').Signal<Order>} */
const order = signal({ column: 'index', down: false, text: '', only: /** @type {Order['only']} */ ('all'), grouped: false });
/**
 * The user's choice of columns; `null` for the default.
 *
 * @type {import('../../library/signals.js').Signal<Set<string> | null>}
 */
const chosen = signal(/** @type {any} */ (null));
const visible = computed(() => columns.value.filter((column) => (chosen.value ? chosen.value.has(column.key) : column.shown)));
const list = computed(() => arranged([...rows.value], order.value, columns.value));
/**
 * The rows with a heading for each group.
 *
 * @type {{ readonly value: (Row | Group)[], peek: () => (Row | Group)[] }}
 */
const lines = computed(() => {
  if (!order.value.grouped) return list.value;
  /** @type {Map<string, Row[]>} */
  const groups = new Map();
  for (const row of list.value) groups.set(row.operator, [...(groups.get(row.operator) ?? []), row]);
  return [...groups].sort((a, b) => b[1].length - a[1].length).flatMap(([group, inside]) => [
    { group, rows: inside.length, integers: inside.filter((row) => row.state === 'integers').length }, ...inside,
  ]);
});
/** @param {Partial<Order>} change */
const arrange = (change) => (order.value = { ...order.peek(), ...change });

export function view() {
  needGraphs();
  const table = virtual({
    label: 'Layers',
    columns: () => ({ head: heading(visible.value), widths: [...visible.value.map((column) => column.width), 17.5] }),
    rows: () => (void visible.value, void selected.value, void run.value, void readOnly.value, lines.value),
    draw: (line) => ('group' in line ? groupRow(line) : layerRow(line)),
    key: (line) => ('group' in line ? `group ${line.group}` : line.name),
    empty: () => h('p', { class: 'note' }, floatGraph.value.failure || (rows.value.length > 0 ? 'No layer matches the filter.' : 'Reading the graph.')),
  });
  table.element.addEventListener('keydown', (event) => walk(event, table));
  // A layer selected in the graph scrolls into view.
  effect(() => {
    const at = lines.value.findIndex((line) => 'name' in line && line.name === selected.value);
    if (at >= 0) queueMicrotask(() => table.reveal(at));
  });
  return h('section', { class: 'panel layers', 'aria-labelledby': 'layers-title' },
    h('div', { class: 'row spread' },
      h('h2', { id: 'layers-title' }, 'Layers'),
      h('p', { class: 'note', id: 'layers-note', role: 'status' }, summary),
      h('span', { class: 'row' },
        h('button', { type: 'button', class: 'small', title: 'Ctrl+Z', disabled: () => undoable.value.length === 0 || settingsLocked(), onclick: undo }, 'Undo'),
        h('button', { type: 'button', class: 'small', title: 'Ctrl+Shift+Z or Ctrl+Y', disabled: () => redoable.value.length === 0 || settingsLocked(), onclick: redo }, 'Redo')),
    ),
    tools(),
    table.element,
    runHistoryPanel(),
  );
}

function summary() {
  const result = done.value?.result.summary;
  const count_ = `${count(list.value.length)} of ${plural(rows.value.length, 'layer')}`;
  if (!result) return `${count_}. Types and scales are known after a run.`;
  const integers = result.nodes.filter((node) => node.quantized).length;
  return `${count_}; ${count(integers)} ${worksOn(done.value?.document ?? {}).on}; ${bytes(result.bytesAfter)}.`;
}

function tools() {
  const pickers = () => columns.value.map((column) => h('label', { class: 'check' },
    h('input', { type: 'checkbox', checked: visible.value.includes(column), onchange: (/** @type {Event} */ event) => {
      const next = new Set(visible.peek().map((one) => one.key));
      if (/** @type {HTMLInputElement} */ (event.target).checked) next.add(column.key);
      else next.delete(column.key);
      chosen.value = next;
    } }), h('span', {}, column.title)));
  const stem = () => model.peek()?.name.replace(/\.onnx$/i, '') ?? 'model';
  return h('div', { class: 'row tools' },
    h('input', { type: 'search', id: 'layer-filter', placeholder: 'Filter by name, operator or reason', 'aria-label': 'Filter', value: () => order.value.text,
      oninput: (/** @type {Event} */ event) => arrange({ text: /** @type {HTMLInputElement} */ (event.target).value }) }),
    menu({ id: 'layer-only', 'aria-label': 'Show' }, () => order.value.only,
      () => [['all', 'All layers'], ['integers', worksOn(done.value?.document ?? {}).title], ['float', 'Float'], ['changed', 'Changed by me']],
      (only) => arrange({ only: /** @type {Order['only']} */ (only) })),
    h('label', { class: 'check' }, h('input', { type: 'checkbox', id: 'layer-groups', checked: () => order.value.grouped, onchange: (/** @type {Event} */ event) => arrange({ grouped: /** @type {HTMLInputElement} */ (event.target).checked }) }), h('span', {}, 'Group by operator')),
    h('details', { class: 'menu' }, h('summary', {}, 'Columns'), h('div', { class: 'sheet columns' }, pickers)),
    h('button', { type: 'button', class: 'small', id: 'layers-csv', onclick: () => save(csv(list.peek(), columns.peek()), 'text/csv', `${stem()}.layers.csv`) }, 'CSV'),
  );
}

/** @param {Column[]} shown */
function heading(shown) {
  const { column: by, down } = order.value;
  return h('tr', { 'aria-rowindex': 1 },
    ...shown.map((column) => h('th', { scope: 'col', class: column.figure ? 'figure' : null, 'aria-sort': by === column.key ? (down ? 'descending' : 'ascending') : 'none' },
      h('button', { type: 'button', class: 'sort', 'data-sort': column.key, onclick: () => {
        arrange({ column: column.key, down: by === column.key ? !down : false });
        queueMicrotask(() => /** @type {HTMLElement | null} */ (document.querySelector(`[data-sort="${column.key}"]`))?.focus());
      } }, column.title, h('span', { 'aria-hidden': 'true', class: 'arrow' }, by === column.key ? (down ? '▾' : '▴') : '')))),
    h('th', { scope: 'col' }, 'Change'));
}

/** @param {Group} group */
function groupRow({ group, rows: inside, integers }) {
  return h('tr', { class: 'group' }, h('th', { colspan: visible.peek().length + 1, scope: 'rowgroup' }, `${group}: ${count(inside)}`, done.peek() ? h('span', { class: 'note' }, `, ${count(integers)} ${worksOn(done.peek()?.document ?? {}).on}`) : null));
}

/** @param {Row} row */
function layerRow(row) {
  const open = () => (selected.value = row.name);
  return h('tr', { class: [row.name === selected.peek() ? 'chosen' : '', row.own ? 'own' : ''].filter(Boolean).join(' ') || null, 'data-row': row.name, onclick: open },
    ...visible.peek().map((column) => {
      if (column.key === 'name') {
        return h('td', {}, h('button', { type: 'button', class: 'link', 'data-key': `open ${row.name}`, title: row.name, 'aria-current': row.name === selected.peek() ? 'true' : null, onclick: open }, row.name));
      }
      if (column.key === 'state') return h('td', { title: row.reason || null }, state(row));
      const value = column.value(row);
      const text = typeof value === 'number' ? (column.key === 'index' || column.key === 'zero' || column.key === 'scales' ? count(value) : real(value)) : value;
      return h('td', { class: column.figure ? 'figure' : null, title: typeof value === 'string' && value.length > 12 ? value : null }, text);
    }),
    h('td', { class: 'acts' }, keepFloat(row), sixteenBits(row), methodChoice(row)),
  );
}

/** @param {Row} row */
function state(row) {
  if (row.state === 'unknown') return h('span', { class: 'note' }, 'not yet known');
  return row.state === 'integers' ? h('span', { class: 'chip good' }, worksOn(done.peek()?.document ?? {}).chip) : h('span', { class: 'chip fair' }, 'float');
}

/**
 * Up and Down move from layer to layer.
 *
 * @param {KeyboardEvent} event
 * @param {{ reveal: (index: number) => void }} table
 */
function walk(event, table) {
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
  const target = /** @type {HTMLElement} */ (event.target);
  if (!step || target instanceof HTMLSelectElement || target instanceof HTMLInputElement) return;
  const layers = lines.peek();
  const at = layers.findIndex((line) => 'name' in line && line.name === selected.peek());
  let next = Math.max(0, Math.min(layers.length - 1, at + step));
  if ('group' in layers[next]) next = Math.max(0, Math.min(layers.length - 1, next + Math.sign(step)));
  const line = layers[next];
  if (!line || 'group' in line) return;
  event.preventDefault();
  batch(() => (selected.value = line.name));
  table.reveal(next);
  queueMicrotask(() => /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="${CSS.escape(`open ${line.name}`)}"]`))?.focus({ preventScroll: true }));
}
