// @ts-check
/** The selected layer: its state and the reason, controls, and the distribution of its values. */

import { h } from '../../library/dom.js';
import { count, real } from '../../library/format.js';
import { computed } from '../../library/signals.js';
import { fact } from '../../library/table.js';
import { floatGraph } from '../../state/graphs.js';
import { run, selected } from '../../state/page.js';
import { keepFloat, methodChoice, sixteenBits, typeChoices } from '../layers/actions.js';
import { measures, rows } from '../layers/rows.js';
import { channelRanges } from './channel-ranges.js';
import { distributionView } from './distribution.js';

/** @import { Row } from '../layers/rows.js' */
/** @import { QuantizedTensor } from '../../types.js' */

export function view() {
  const row = computed(() => rows.value.find((one) => one.name === selected.value) ?? null);
  return h('div', { class: 'panel inspector' },
    h('div', { class: 'row spread' },
      h('h2', {}, 'Selected layer'),
      h('button', { type: 'button', class: 'small', id: 'close-inspector', onclick: close }, 'Close'),
    ),
    () => {
      void run.value;
      return row.value ? about(row.value) : h('p', { class: 'note' }, 'Reading the graph.');
    },
    distributionView(row),
    channelRanges(row),
    () => row.value && neighbours(row.value),
  );
}

function close() {
  const name = selected.peek();
  selected.value = '';
  /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="${CSS.escape(`open ${name}`)}"]`))?.focus();
}

/** @param {Row} row */
function about(row) {
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
      ...Object.entries(row.measured).flatMap(([name, value]) => fact(measures[name] ?? name, real(value))),
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
