// @ts-check
/**
 * The layers of two results in one table. Selection and bar scale are shared, and a column has the
 * difference. Above the table, the selected layer is shown for both sides: both ranges under one
 * histogram, and every figure.
 */

import { h, svg } from '../../library/dom.js';
import { menu } from '../../library/fields.js';
import { count, plural, real } from '../../library/format.js';
import { computed, effect, signal } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { virtual } from '../../library/virtual.js';
import { floatGraph, needGraphs } from '../../state/graphs.js';
import { model, selected } from '../../state/page.js';
import { barsOf, elementOf } from '../inspector/distribution.js';
import { differs, linked, measures, pair } from './pair.js';

/** @import { Row } from '../layers/rows.js' */
/** @import { Line, Measure } from './pair.js' */
/** @import { ValueDistribution } from '../../types.js' */

const measure = signal('bits');
const onlyDifferent = signal(false);
const order = signal({ by: 'index', down: false });

/** Measures with a value on at least one side. */
const known = computed(() => Object.keys(measures).filter((key) => linked.value.some(({ left, right }) => measures[key].of(left) !== null || measures[key].of(right) !== null)));
/** @returns {Measure} */
const chosen = () => measures[known.value.includes(measure.value) ? measure.value : 'bits'];
/** @param {Line} line */
const difference = ({ left, right }) => {
  const [was, is] = [chosen().of(left), chosen().of(right)];
  return was === null || is === null ? null : is - was;
};
const lines = computed(() => {
  const { by, down } = order.value;
  /** @type {Record<string, (line: Line) => number | string | null>} */
  const keys = { index: (line) => line.index, name: (line) => line.name, left: (line) => chosen().of(line.left), right: (line) => chosen().of(line.right), difference };
  const key = keys[by];
  const shown = linked.value.filter((line) => !onlyDifferent.value || differs(line)).map((line) => ({ line, value: key(line) }));
  // Unknown values sort last in both directions.
  shown.sort((a, b) => {
    if (a.value === null || b.value === null) return a.value === b.value ? 0 : a.value === null ? 1 : -1;
    return (typeof a.value === 'number' ? a.value - Number(b.value) : a.value.localeCompare(String(b.value), undefined, { numeric: true })) * (down ? -1 : 1);
  });
  return shown.map(({ line }) => line);
});
/** The largest value on either side, which a full bar stands for. */
const most = computed(() => linked.value.reduce((greatest, { left, right }) => Math.max(greatest, Math.abs(chosen().of(left) ?? 0), Math.abs(chosen().of(right) ?? 0)), 0));

/** @param {{ left: () => string, right: () => string }} names what the two sides are called */
export function linkedLayers(names) {
  needGraphs();
  const list = virtual({
    label: 'Layers of both results',
    columns: () => ({ head: heading(names), widths: [3.25, 13, 6.5, 11, 11, 8] }),
    rows: () => (void selected.value, void most.value, lines.value),
    draw: row,
    key: ({ name }) => name,
    empty: () => h('p', { class: 'note' }, floatGraph.value.failure || (linked.value.length > 0 ? 'All layers have the same types and scales.' : 'Reading the graph.')),
  });
  effect(() => {
    const at = lines.value.findIndex(({ name }) => name === selected.value);
    if (at >= 0) queueMicrotask(() => list.reveal(at));
  });
  return h('section', { class: 'gap', 'aria-labelledby': 'linked-title' },
    h('h3', { id: 'linked-title' }, 'Layer by layer'),
    h('div', { class: 'row tools' },
      h('label', { class: 'row' }, h('span', {}, 'By'), menu({ id: 'linked-measure' }, () => (known.value.includes(measure.value) ? measure.value : 'bits'),
        () => known.value.map((key) => [key, measures[key].title]), (key) => (measure.value = key))),
      h('label', { class: 'check' }, h('input', { type: 'checkbox', id: 'linked-different', checked: () => onlyDifferent.value, onchange: (/** @type {Event} */ event) => (onlyDifferent.value = /** @type {HTMLInputElement} */ (event.target).checked) }), h('span', {}, 'Only differences')),
      h('span', { class: 'note', role: 'status', id: 'linked-note' }, () => `${count(linked.value.filter(differs).length)} of ${plural(linked.value.length, 'layer')} differ`),
    ),
    h('p', { class: 'note', hidden: () => known.value.includes('reached') && known.value.includes('ms') }, 'Measure error and time on the Overview tab to compare them here.'),
    h('div', {}, () => {
      const line = linked.value.find(({ name }) => name === selected.value);
      return line ? both(line, names) : h('p', { class: 'note' }, 'Select a layer to see it on both sides.');
    }),
    list.element,
  );
}

/** @param {{ left: () => string, right: () => string }} names */
function heading(names) {
  const { by, down } = order.value;
  const head = (/** @type {string} */ key, /** @type {string} */ text, figure = false) => h('th', { scope: 'col', class: figure ? 'figure' : null, 'aria-sort': by === key ? (down ? 'descending' : 'ascending') : 'none' },
    h('button', { type: 'button', class: 'sort', 'data-linked-sort': key, title: text, onclick: () => {
      order.value = { by: key, down: by === key ? !down : false };
      queueMicrotask(() => /** @type {HTMLElement | null} */ (document.querySelector(`[data-linked-sort=${key}]`))?.focus());
    } }, h('span', { class: 'cut' }, text), h('span', { 'aria-hidden': 'true', class: 'arrow' }, by === key ? (down ? '▾' : '▴') : '')));
  return h('tr', { 'aria-rowindex': 1 }, head('index', '#', true), head('name', 'Node'), h('th', { scope: 'col' }, 'Operator'), head('left', names.left(), true), head('right', names.right(), true), head('difference', 'Difference', true));
}

/** @param {Line} line */
function row(line) {
  const { name, operator, index } = line;
  const open = () => (selected.value = name);
  const by = difference(line);
  const { moreIsBetter } = chosen();
  const worse = by !== null && by !== 0 && measure.value !== 'bits' && (by > 0) !== Boolean(moreIsBetter);
  return h('tr', { class: name === selected.peek() ? 'chosen' : null, 'data-linked': name, onclick: open },
    h('td', { class: 'figure' }, count(index + 1)),
    h('td', {}, h('button', { type: 'button', class: 'link', title: name, 'data-key': `linked ${name}`, 'aria-current': name === selected.peek() ? 'true' : null, onclick: open }, name)),
    h('td', { title: operator }, operator),
    side(line.left), side(line.right),
    h('td', { class: `figure${worse ? ' worse' : ''}` }, by === null ? '' : by === 0 ? 'same' : `${by > 0 ? '+' : '−'}${real(Math.abs(by))}${worse ? ' ▾' : ''}`, worse && h('span', { class: 'unseen' }, ' worse')),
  );
}

/** A value and its bar, relative to the largest value on either side. @param {Row} of */
function side(of) {
  const value = chosen().of(of);
  const bar = svg('svg', { class: 'bar-cell', viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { x: 0, y: 1, height: 8, width: value === null || most.value === 0 ? 0 : Math.max(0.5, (Math.abs(value) / most.value) * 100) }));
  const text = value === null ? (measure.value === 'width' || measure.value === 'step' ? (of.state === 'float' ? 'float' : '') : '') : measure.value === 'sqnr' || measure.value === 'reached' ? (value >= 200 ? 'equal' : real(value)) : real(value);
  return h('td', { class: 'figure' }, h('span', { class: 'with-bar' }, bar, h('span', {}, text)));
}

/** The selected layer on both sides. @param {Line} line @param {{ left: () => string, right: () => string }} names */
function both(line, names) {
  const { left, right } = line;
  const text = (/** @type {Row} */ of, /** @type {(row: Row) => string} */ say) => say(of) || '–';
  /** @type {[string, (row: Row) => string, ((row: Row) => number | null)?][]} */
  const facts = [
    ['Arithmetic', (row) => (row.state === 'unknown' ? '' : row.state)],
    ['Output type', (row) => row.tensor?.element.toLowerCase() ?? (row.state === 'float' ? 'float32' : '')],
    ['Range min', (row) => (row.tensor ? real(row.tensor.min) : ''), (row) => row.tensor?.min ?? null],
    ['Range max', (row) => (row.tensor ? real(row.tensor.max) : ''), (row) => row.tensor?.max ?? null],
    ['Weight type', (row) => row.weight?.element.toLowerCase() ?? (row.weightName ? 'float' : '')],
    ...known.value.filter((key) => key !== 'bits' && key !== 'width').map((key) => /** @type {[string, (row: Row) => string, (row: Row) => number | null]} */ ([
      measures[key].title, (row) => (measures[key].of(row) === null ? '' : real(measures[key].of(row) ?? 0)), measures[key].of])),
  ];
  const change = (/** @type {((row: Row) => number | null) | undefined} */ of, /** @type {string} */ was, /** @type {string} */ is) => {
    const [first, second] = [of?.(left) ?? null, of?.(right) ?? null];
    if (first === null || second === null) return was === is ? 'same' : '';
    return first === second ? 'same' : `${second > first ? '+' : '−'}${real(Math.abs(second - first))}`;
  };
  return h('section', { class: 'both', 'aria-labelledby': 'both-title' },
    h('h3', { id: 'both-title' }, left.name, h('span', { class: 'note' }, ` ${left.operator}, ${left.output}`)),
    ranges(line, names),
    table(['', names.left(), names.right(), 'Difference'], facts.map(([title, say, of]) => [title, text(left, say), text(right, say), change(of, say(left), say(right))]).filter(([, was, is]) => was !== '–' || is !== '–'), [1, 2, 3]),
  );
}

const [width, foot, lane] = [640, 70, 16];

/**
 * Both ranges under one histogram, on one axis.
 *
 * @param {Line} line
 * @param {{ left: () => string, right: () => string }} names
 */
function ranges({ left, right }, names) {
  const shown = right.tensor ?? left.tensor;
  if (!shown || shown.kind !== 'activation') return h('p', { class: 'note' }, shown ? '' : 'Float on both sides: there is no range to compare.');
  /** @type {import('../../library/signals.js').Signal<ValueDistribution | null>} */
  const seen = signal(/** @type {any} */ (null));
  const open = model.peek();
  const output = right.tensor ? right.output : left.output;
  if (open?.calibrated) open.distribution(output, elementOf(shown.element)).then((found) => (seen.value = found), () => {});
  return h('div', {}, () => {
    const bars = seen.value;
    const ends = [left, right].flatMap(({ tensor }) => (tensor ? [tensor.min, tensor.max] : []));
    const low = Math.min(...ends, ...(bars ? [bars.low] : []));
    const high = Math.max(...ends, ...(bars ? [bars.low + bars.width * bars.counts.length] : []));
    const x = (/** @type {number} */ value) => ((value - low) / (high - low || 1)) * width;
    const text = [left, right].map(({ tensor }, at) => `${at === 0 ? names.left() : names.right()}: ${tensor ? `${real(tensor.min)} to ${real(tensor.max)}` : 'float'}`).join('; ');
    const picture = svg('svg', { viewBox: `0 0 ${width} ${foot + 2 * lane + 18}`, class: 'histogram two-ranges', role: 'img', 'aria-label': `Ranges on one axis. ${text}` });
    if (bars) picture.append(svg('path', { class: 'bars', d: barsOf(bars, x, foot) }));
    picture.append(svg('line', { class: 'axis', x1: 0, x2: width, y1: foot, y2: foot }));
    [left, right].forEach(({ tensor }, at) => {
      const y = foot + 3 + at * lane;
      if (tensor) picture.append(svg('rect', { class: `lane-${at}`, x: x(tensor.min), y, width: Math.max(2, x(tensor.max) - x(tensor.min)), height: lane - 5, rx: 3 }));
      picture.append(svg('text', { class: 'lane-name', x: 4, y: y + 9 }, `${at === 0 ? 'First' : 'Second'}${tensor ? '' : ': float, no range'}`));
    });
    picture.append(svg('text', { x: 0, y: foot + 2 * lane + 14 }, real(low)), svg('text', { x: width, y: foot + 2 * lane + 14, 'text-anchor': 'end' }, real(high)));
    return h('figure', {}, picture, h('figcaption', {}, `${text}.${bars ? ' Bar heights are logarithmic counts.' : ''}`));
  });
}

/** True if there are two different results to compare. */
export const comparable = () => pair.value !== null && pair.value.left !== pair.value.right;
