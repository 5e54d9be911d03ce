// @ts-check
/**
 * The graph, float and quantized, alone or side by side, with a common selection, search and colour
 * scheme.
 */

import { h } from '../../library/dom.js';
import { menu } from '../../library/fields.js';
import { count } from '../../library/format.js';
import { computed, signal } from '../../library/signals.js';
import { floatGraph, needGraphs, quantizedGraph } from '../../state/graphs.js';
import { say } from '../../state/messages.js';
import { done, selected } from '../../state/page.js';
import { measures, rows } from '../layers/rows.js';
import { pane } from './pane.js';

/** @typedef {'operator' | 'type' | string} Colour */

const shown = signal(/** @type {'float' | 'quantized' | 'both'} */ ('float'));
/** The last choice from the menu. */
const chosenColour = signal(/** @type {Colour} */ ('type'));
const search = signal('');

const byName = computed(() => new Map(rows.value.map((row) => [row.name, row])));
const measured = computed(() => [...new Set(rows.value.flatMap((row) => Object.keys(row.measured)))]);
/** The colour in use: `type` where this model does not have the measure. */
const colour = computed(() => (['operator', ...measured.value].includes(chosenColour.value) ? chosenColour.value : 'type'));
/** Operators by frequency; the first few have a hue of their own. */
const operators = computed(() => {
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const row of rows.value) times.set(row.operator, (times.get(row.operator) ?? 0) + 1);
  return [...times].sort((a, b) => b[1] - a[1]).map(([name]) => name);
});
/** @type {{ readonly value: { low: number, high: number } }} */
const spread = computed(() => {
  const values = rows.value.map((row) => row.measured[colour.value]).filter((value) => Number.isFinite(value));
  return { low: Math.min(...values), high: Math.max(...values) };
});

/**
 * The class for the colour of a node. Operator and type are shown as text, too.
 *
 * @param {string} name
 * @param {string} operator
 * @param {string} badge
 */
function paint(name, operator, badge) {
  const row = byName.value.get(name);
  if (!name) return 'end';
  if (colour.value === 'operator') {
    const at = operators.value.indexOf(operator);
    return at >= 0 && at < 6 ? `hue-${at}` : 'hue-none';
  }
  if (colour.value === 'type') {
    // A float node's output may still be quantized; the badge shows that.
    if (row?.state === 'float') return 'bits-float';
    const element = row?.tensor?.element.toLowerCase() ?? badge;
    if (/16|32/.test(element)) return 'bits-16';
    return row?.state === 'integers' || element ? 'bits-8' : 'hue-none';
  }
  const value = row?.measured[colour.value];
  const { low, high } = spread.value;
  return value === undefined ? 'hue-none' : `heat-${Math.min(4, Math.floor(((value - low) / (high - low || 1)) * 5))}`;
}

export function view() {
  needGraphs({ both: true });
  const matches = computed(() => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length === 0 ? [] : rows.value.filter((row) => words.every((word) => `${row.name} ${row.operator} ${row.output}`.toLowerCase().includes(word)));
  });
  /** @param {number} step */
  const next = (step) => {
    const found = matches.value;
    if (found.length === 0) return say('No node matches.');
    const at = found.findIndex((row) => row.name === selected.peek());
    selected.value = found[(at + step + found.length) % found.length].name;
    say(`${selected.peek()}, ${found.findIndex((row) => row.name === selected.peek()) + 1} of ${found.length}`);
  };
  const isShown = (/** @type {string} */ which) => shown.value === which || shown.value === 'both';
  return h('section', { class: 'panel graph', 'aria-labelledby': 'graph-title' },
    h('div', { class: 'row tools' },
      h('h2', { id: 'graph-title' }, 'Graph'),
      menu({ id: 'graph-shown', 'aria-label': 'Which graph' }, () => shown.value, [['float', 'Float'], ['quantized', 'Quantized'], ['both', 'Side by side']],
        (which) => (shown.value = /** @type {'float' | 'quantized' | 'both'} */ (which))),
      menu({ id: 'graph-colour', 'aria-label': 'Colour by' }, () => colour.value,
        () => [['type', 'Colour: type'], ['operator', 'Colour: operator'], ...measured.value.map((key) => [key, `Colour: ${measures[key] ?? key}`])], (by) => (chosenColour.value = by)),
      h('input', { type: 'search', id: 'graph-search', placeholder: 'Search', 'aria-label': 'Search nodes', value: () => search.value,
        oninput: (/** @type {Event} */ event) => (search.value = /** @type {HTMLInputElement} */ (event.target).value),
        onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && next(event.shiftKey ? -1 : 1) }),
      h('span', { class: 'note', role: 'status' }, () => (search.value ? `${count(matches.value.length)} found` : '')),
      h('button', { type: 'button', class: 'small', id: 'graph-next', disabled: () => matches.value.length === 0, onclick: () => next(1) }, 'Next'),
    ),
    h('p', { class: 'note legend' }, legend),
    h('div', { class: () => (shown.value === 'both' ? 'panes two' : 'panes') },
      h('div', { class: 'pane-box', hidden: () => !isShown('float') }, ...pane('Float model', floatGraph, paint, () => (isShown('float') ? '' : 'hidden'))),
      h('div', { class: 'pane-box', hidden: () => !isShown('quantized') },
        ...pane('Quantized model', quantizedGraph, paint, () => (!isShown('quantized') ? 'hidden' : done.value ? '' : 'The quantized graph is shown after a run.'))),
    ),
  );
}

function legend() {
  const chip = (/** @type {string} */ kind, /** @type {string} */ text) => h('span', { class: `legend-chip ${kind}` }, text);
  if (colour.value === 'type') return [chip('bits-8', '8 bits or fewer'), chip('bits-16', '16 bits or more'), chip('bits-float', 'float'), chip('hue-none', 'not known yet')];
  if (colour.value === 'operator') return [...operators.value.slice(0, 6).map((name, at) => chip(`hue-${at}`, name)), chip('hue-none', 'others')];
  return [...[0, 1, 2, 3, 4].map((at) => chip(`heat-${at}`, at === 0 ? 'least' : at === 4 ? 'most' : '·')), chip('hue-none', 'not measured')];
}
