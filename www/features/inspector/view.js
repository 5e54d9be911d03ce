// @ts-check
/** The selected layer: its state and the reason, controls, and the distribution of its values. */

import { h } from '../../library/dom.js';
import { keepFocus } from '../../library/focus.js';
import { count, real } from '../../library/format.js';
import { computed } from '../../library/signals.js';
import { fact } from '../../library/table.js';
import { floatGraph } from '../../state/graphs.js';
import { run, selected, settings } from '../../state/page.js';
import { keepFloat, methodChoice, sixteenBits, typeChoices } from '../layers/actions.js';
import { measures, rows } from '../layers/rows.js';
import { channelRanges } from './channel-ranges.js';
import { distributionView } from './distribution.js';

/** @import { Row } from '../layers/rows.js' */
/** @import { QuantizedTensor } from '../../types.js' */

export function view() {
  const row = computed(() => rows.value.find((one) => one.name === selected.value) ?? null);
  /** @type {Row | null} */
  let kept = null;
  // A measurement changes the figures, but not the controls, which may be in use.
  const still = computed(() => (kept = row.value && kept && sameButFigures(row.value, kept) ? kept : row.value));
  const figures = () => Object.entries(row.value?.measured ?? {}).flatMap(([name, value]) => fact(measures[name] ?? name, real(value)));
  /** @type {HTMLElement | undefined} */
  let box;
  box = h('div', {}, () => {
    void run.value;
    void settings.value;
    keepFocus(box);
    return still.value ? about(still.value, figures) : h('p', { class: 'note' }, 'Reading the graph.');
  });
  return h('div', { class: 'panel inspector' },
    h('div', { class: 'row spread' },
      h('h2', {}, 'Selected layer'),
      h('button', { type: 'button', class: 'small', id: 'close-inspector', onclick: close }, 'Close'),
    ),
    box,
    distributionView(row),
    channelRanges(row),
    () => row.value && neighbours(row.value),
  );
}

/** True if two rows are equal but for what was measured. @param {Row} one @param {Row} other */
function sameButFigures(one, other) {
  const keys = /** @type {(keyof Row)[]} */ (Object.keys(one));
  return keys.every((key) => key === 'measured' || key === 'kernel' || one[key] === other[key]);
}

function close() {
  const name = selected.peek();
  selected.value = '';
  /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="${CSS.escape(`open ${name}`)}"]`))?.focus();
}

/** @param {Row} row @param {() => Element[]} figures read live */
function about(row, figures) {
  return h('div', { class: 'gap' },
    h('p', { class: 'file' }, h('strong', {}, row.name), h('span', { class: 'note' }, ` ${row.operator}`)),
    row.state === 'float' && h('p', { class: 'callout fair' }, `Stays float: ${row.reason || 'no reason was given'}.`),
    row.state === 'integers' && !row.tensor && h('p', { class: 'note' }, 'Runs in integer arithmetic; its output has no scale of its own.'),
    row.state === 'unknown' && h('p', { class: 'note' }, 'Type and scale are known after a run.'),
    row.state !== 'unknown' && h('div', { class: 'row' }, keepFloat(row), sixteenBits(row), methodChoice(row)),
    row.state !== 'unknown' && typeChoices(row),
    h('dl', { class: 'facts' },
      ...fact('Output', h('code', { class: 'long' }, row.output)),
      ...(row.shape ? fact('Shape', row.shape) : []),
      ...tensorFacts(row.tensor),
      ...(row.weight ? [...fact('Weight', row.weight.element.toLowerCase()), ...fact('Weight scales', count(row.weight.scales)), ...fact('Largest weight scale', real(row.weight.scale))] : []),
      ...(row.weightShape ? fact('Weight shape', row.weightShape) : []),
      figures,
    ),
  );
}

/** @param {QuantizedTensor | null} tensor */
function tensorFacts(tensor) {
  if (!tensor) return [];
  return [
    ...fact('Type', tensor.element.toLowerCase()), ...fact('Scale', real(tensor.scale)), ...fact('Zero point', count(tensor.zeroPoint)),
    ...fact('Range', `${real(tensor.min)} to ${real(tensor.max)}`),
  ];
}

/** Links to its predecessors and successors. @param {Row} row */
function neighbours(row) {
  const { indexed } = floatGraph.value;
  const node = indexed?.byName.get(row.name);
  if (!indexed || !node) return null;
  const before = [...new Set(node.inputs.map((name) => indexed.makers.get(name)?.name).filter((name) => name !== undefined))];
  const after = [...new Set(node.outputs.flatMap((name) => (indexed.users.get(name) ?? []).map((one) => one.name)))];
  const links = (/** @type {string} */ title, /** @type {string[]} */ names) => names.length > 0 && h('div', {}, h('h3', {}, title),
    h('ul', { class: 'plain' }, ...names.slice(0, 12).map((name) => h('li', {}, h('button', { type: 'button', class: 'link', onclick: () => (selected.value = name) }, name))), names.length > 12 && h('li', { class: 'note' }, `and ${count(names.length - 12)} more`)));
  return h('div', { class: 'gap' }, links('Inputs from', before), links('Output to', after));
}
