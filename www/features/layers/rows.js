// @ts-check
/** One row per node: its quantization, the type and scale of its output, and its measurements. */

import { defaultMethod, get } from '../../settings-document.js';
import { computed } from '../../library/signals.js';
import { floatGraph } from '../../state/graphs.js';
import { done, runHistory, settings, timing } from '../../state/page.js';

/** @import { NodeChoice, NodeView, QuantizedTensor, Settings, QuantizationSummary } from '../../types.js' */
/** @import { Figures } from '../result/figures.js' */
/** @import { Indexed } from '../../state/graphs.js' */

/**
 * @typedef {object} Row
 * @property {number} index the place of the node in the model
 * @property {string} name
 * @property {string} operator
 * @property {'integers' | 'float' | 'unknown'} state
 * @property {string} reason why it is float
 * @property {string} output the value whose representation this is; in front of a Relu or Clip, what that makes
 * @property {string} shape
 * @property {QuantizedTensor | null} tensor
 * @property {QuantizedTensor | null} weight
 * @property {string} weightName
 * @property {string} weightShape
 * @property {string} method how its range is chosen
 * @property {boolean} own whether the document says something of this very node or tensor
 * @property {Record<string, number>} measured
 * @property {string} kernel the code that ran it when the result was timed
 */

/** The measurements of the current result. @returns {Figures} */
const measured = () => runHistory.value.find(({ id }) => id === done.value?.id)?.layers ?? {};

/** Operators that the quantizer folds into the node before them. */
const folded = new Set(['Relu', 'Clip']);

/** @param {Indexed} indexed @param {NodeView} node @param {Map<string, QuantizedTensor>} tensors */
function represented(indexed, node, tensors) {
  let output = node.outputs[0] ?? '';
  const users = indexed.users.get(output) ?? [];
  // The input of a Relu or Clip has the range of its output, which is the observed value.
  if (users.length === 1 && folded.has(users[0].operator)) {
    const after = users[0].outputs[0] ?? '';
    if (tensors.has(after)) output = after;
  }
  return output;
}

/**
 * The rows of a result, or without one.
 *
 * @param {Indexed} indexed
 * @param {Settings} document
 * @param {QuantizationSummary | undefined} summary
 * @param {Figures} figures
 * @param {Map<string, string>} [kernels]
 * @returns {Row[]}
 */
export function rowsOf(indexed, document, summary, figures, kernels = new Map()) {
  /** @type {Map<string, NodeChoice>} */
  const choices = new Map(summary?.nodes.map((choice) => [choice.node, choice]));
  const tensors = new Map(summary?.tensors.map((tensor) => [tensor.name, tensor]));
  return indexed.graph.nodes.map((node, at) => {
    const choice = choices.get(node.name);
    const output = represented(indexed, node, tensors);
    const weightName = node.inputs.find((name, slot) => slot > 0 && indexed.graph.values[name]?.constant) ?? '';
    const method = get(document, ['tensors', output, 'method']) ?? get(document, ['by_node', node.name, 'activations', 'method'])
      ?? get(document, ['by_operator', node.operator, 'activations', 'method']) ?? document.method ?? defaultMethod;
    const range = get(document, ['tensors', output, 'range']);
    return {
      index: at,
      name: node.name,
      operator: node.operator,
      state: choice ? (choice.quantized ? 'integers' : 'float') : 'unknown',
      reason: choice?.reason ?? '',
      output,
      shape: indexed.graph.values[output]?.shape ?? '',
      tensor: tensors.get(output) ?? null,
      weight: tensors.get(weightName) ?? null,
      weightName,
      weightShape: indexed.graph.values[weightName]?.shape ?? '',
      method: range ? 'manual' : method,
      own: Boolean(get(document, ['by_node', node.name]) ?? get(document, ['tensors', output])),
      measured: figures[node.name] ?? {},
      kernel: kernels.get(node.name) ?? '',
    };
  });
}

/** @type {{ readonly value: Row[] }} */
export const rows = computed(() => {
  const { indexed } = floatGraph.value;
  const times = timing.value?.id === done.value?.id ? timing.value : null;
  // All nodes of a layer run in the layer's kernel.
  const kernels = new Map(times?.quantized.layers.flatMap(({ nodes, kernel, inFloat }) => nodes.map((name) => /** @type {[string, string]} */ ([name, inFloat ? `${kernel}: ${inFloat}` : kernel]))));
  return indexed ? rowsOf(indexed, settings.value.document, done.value?.result.summary, measured(), kernels) : [];
});

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {number} width in rem
 * @property {boolean} [figure] whether it holds numbers
 * @property {boolean} [shown] whether it is shown where nobody chose
 * @property {(row: Row) => string | number} value what it is sorted by, and what a CSV file gets
 */

/** @type {Column[]} */
const fixed = [
  { key: 'index', title: '#', width: 3.25, figure: true, shown: true, value: (row) => row.index + 1 },
  { key: 'name', title: 'Node', width: 12, shown: true, value: (row) => row.name },
  { key: 'operator', title: 'Operator', width: 6, shown: true, value: (row) => row.operator },
  { key: 'state', title: 'Arithmetic', width: 7, shown: true, value: (row) => ({ integers: 'integers', float: 'float', unknown: '' })[row.state] },
  { key: 'reason', title: 'Why float', width: 16, value: (row) => row.reason },
  { key: 'element', title: 'Output type', width: 7.25, shown: true, value: (row) => row.tensor?.element.toLowerCase() ?? '' },
  { key: 'scale', title: 'Scale', width: 6.5, figure: true, shown: true, value: (row) => row.tensor?.scale ?? '' },
  { key: 'zero', title: 'Zero point', width: 7, figure: true, value: (row) => row.tensor?.zeroPoint ?? '' },
  { key: 'min', title: 'Range min', width: 6.5, figure: true, shown: true, value: (row) => row.tensor?.min ?? '' },
  { key: 'max', title: 'Range max', width: 6.5, figure: true, shown: true, value: (row) => row.tensor?.max ?? '' },
  { key: 'method', title: 'Range method', width: 8.5, shown: true, value: (row) => row.method },
  { key: 'kernel', title: 'Kernel', width: 9, value: (row) => row.kernel },
  { key: 'weight', title: 'Weight type', width: 7.25, value: (row) => row.weight?.element.toLowerCase() ?? '' },
  { key: 'scales', title: 'Weight scales', width: 8.25, figure: true, value: (row) => row.weight?.scales ?? '' },
  { key: 'shape', title: 'Output shape', width: 9, value: (row) => row.shape },
  { key: 'weightShape', title: 'Weight shape', width: 9, value: (row) => row.weightShape },
];

/**
 * Titles of the measures of a node. A column appears with its first figure.
 *
 * @type {Record<string, string>}
 */
export const measures = {
  harm: 'Share of error, %', sqnr: 'Own SQNR, dB', weightsOnly: 'Weights only, dB', activationsOnly: 'Activations only, dB', reached: 'SQNR reached, dB', maxDifference: 'Max difference', clipped: 'Clipped, %', floatMs: 'Float, ms', intMs: 'Quantized, ms',
  ratio: 'Quantized ÷ float', ownKb: 'Output, kB', liveKb: 'Live memory after, kB', calls: 'Calls', fused: 'Nodes fused',
};

/** The width in rem of a column of figures: room for its title and the arrow of the order. @param {string} title */
const widthOf = (title) => Math.max(6.5, 1.75 + title.length / 2);

/** Columns that are hidden by default. */
const aside = new Set(['reached', 'ownKb', 'liveKb', 'calls', 'fused']);

/** All columns with content. */
export const columns = computed(() => {
  const result = new Set(Object.values(measured()).flatMap((one) => Object.keys(one)));
  /** @type {Column[]} */
  const more = [...result].map((key) => ({
    key, title: measures[key] ?? key, width: widthOf(measures[key] ?? key), figure: true, shown: !aside.has(key), value: (row) => row.measured[key] ?? '',
  }));
  // Next to the state of the layer, which they explain.
  return [...fixed.slice(0, 4), ...more, ...fixed.slice(4)];
});

/** @typedef {{ column: string, down: boolean, text: string, only: 'all' | 'integers' | 'float' | 'changed', grouped: boolean }} Order */

/** @param {Row[]} all @param {Order} order @param {Column[]} known @returns {Row[]} */
export function arranged(all, { column, down, text, only }, known) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = all.filter((row) =>
    (only === 'all' || (only === 'changed' ? row.own : row.state === only))
    && words.every((word) => `${row.name} ${row.operator} ${row.output} ${row.reason}`.toLowerCase().includes(word)));
  const by = known.find((one) => one.key === column);
  if (!by) return kept;
  const sign = down ? -1 : 1;
  return kept.sort((a, b) => {
    const [left, right] = [by.value(a), by.value(b)];
    // Empty values sort last in both directions.
    if (left === '' || right === '') return left === right ? a.index - b.index : left === '' ? 1 : -1;
    const result = typeof left === 'number' && typeof right === 'number' ? left - right : String(left).localeCompare(String(right), undefined, { numeric: true });
    return result * sign || a.index - b.index;
  });
}

/** @param {Row[]} some @param {Column[]} which */
export function csv(some, which) {
  const cell = (/** @type {unknown} */ value) => {
    const text = String(value);
    // A spreadsheet would take a leading sign of a name for a formula.
    const safe = typeof value === 'string' && /^[=+@\t-]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [which.map((one) => cell(one.title)), ...some.map((row) => which.map((one) => cell(one.value(row))))].map((line) => `${line.join(',')}\n`).join('');
}

/** The 16-bit type with the signedness of the output's current type. @param {Row} row */
export function wideType(row) {
  const signed = /^int/i.test(row.tensor?.element ?? '') || (!row.tensor && settings.peek().document.activations?.type === 'i8');
  return signed ? 'i16' : 'u16';
}
