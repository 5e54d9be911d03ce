// @ts-check
/**
 * The pair of results that is compared, layer by layer; one of them may be the float model. A
 * measure has one value per side and a difference; both sides share one scale.
 */

import { computed, signal } from '../../library/signals.js';
import { floatGraph } from '../../state/graphs.js';
import { model, runHistory } from '../../state/page.js';
import { rowsOf } from '../layers/rows.js';

/** @import { Row } from '../layers/rows.js' */
/** @import { HistoryEntry } from '../../state/page.js' */

/** The id of the float model among the results. */
export const float = -1;

/** The ids of both sides. 0 selects the default: the newest result, and the one before it. */
export const sideIds = signal({ left: 0, right: 0 });

/** The float model as a result in which nothing is quantized. @returns {HistoryEntry | null} */
function floatSide() {
  const last = runHistory.value.at(-1);
  if (!last) return null;
  const { summary, metrics } = runHistory.value.findLast((one) => 'floatMs' in one.metrics) ?? last;
  /** @type {Record<string, number>} */
  const known = {};
  if ('floatMs' in metrics) known.ms = metrics.floatMs;
  if ('floatLow' in metrics) [known.msLow, known.msHigh] = [metrics.floatLow, metrics.floatHigh];
  const right = runHistory.value.find((one) => 'floatAccuracy' in one.metrics)?.metrics.floatAccuracy;
  if (right !== undefined) known.accuracy = right;
  const layers = Object.fromEntries(runHistory.value.flatMap((one) => Object.entries(one.layers).flatMap(([name, { floatMs }]) => (floatMs === undefined ? [] : [[name, { floatMs }]]))));
  return {
    id: float, document: {}, took: 0, metrics: known, layers,
    summary: { ...summary, bytesAfter: summary.bytesBefore, tensors: [], notes: [], advice: [], nodes: summary.nodes.map((node) => ({ ...node, quantized: false, reason: 'the float model' })) },
  };
}

/** All candidates, the float model first. */
export const candidates = computed(() => [floatSide(), ...runHistory.value].flatMap((one) => one ?? []));

/**
 * The pair that is compared; `null` while there is no result.
 *
 * @type {{ readonly value: { left: HistoryEntry, right: HistoryEntry } | null }}
 */
export const pair = computed(() => {
  const all = candidates.value;
  if (all.length < 2) return null;
  const right = all.find((one) => one.id === sideIds.value.right) ?? all[all.length - 1];
  // The default is the result before, or the float model.
  const left = all.find((one) => one.id === sideIds.value.left) ?? all[Math.max(0, all.indexOf(right) - 1)];
  return { left, right };
});

/**
 * @typedef {object} Measure
 * @property {string} title
 * @property {(row: Row) => number | null} of `null` where it is not known, or has no meaning
 * @property {boolean} [moreIsBetter]
 */

/** @param {Row} row the bits of what it makes; what is not integers is 32-bit floats */
const bits = (row) => (row.tensor ? Number(/\d+/.exec(row.tensor.element)?.[0] ?? 8) : row.state === 'float' ? 32 : null);
const figure = (/** @type {string} */ key) => (/** @type {Row} */ row) => row.measured[key] ?? null;

/** The measures by which two results are compared. @type {Record<string, Measure>} */
export const measures = {
  bits: { title: 'Output bits', of: bits },
  width: { title: 'Range width', of: (row) => (row.tensor ? row.tensor.max - row.tensor.min : null) },
  step: { title: 'Scale', of: (row) => row.tensor?.scale ?? null },
  sqnr: { title: 'Own SQNR, dB', of: figure('sqnr'), moreIsBetter: true },
  reached: { title: 'SQNR reached, dB', of: figure('reached'), moreIsBetter: true },
  maxDifference: { title: 'Max difference', of: figure('maxDifference') },
  harm: { title: 'Share of error, %', of: figure('harm') },
  clipped: { title: 'Clipped, %', of: figure('clipped') },
  // Mean times, as they add up.
  ms: { title: 'Time, ms', of: (row) => (row.measured.floatMs !== undefined && row.state === 'float' && row.reason === 'the float model' ? row.measured.floatMs : row.measured.intMs ?? null) },
};

/** @typedef {{ name: string, operator: string, index: number, left: Row, right: Row }} Line a layer on both sides */

/** The layers on both sides, in the order of the model. @type {{ readonly value: Line[] }} */
export const linked = computed(() => {
  const { indexed } = floatGraph.value;
  const now = pair.value;
  if (!indexed || !now || !model.value) return [];
  const [left, right] = [now.left, now.right].map((one) => rowsOf(indexed, one.document, one.summary, one.layers));
  return left.map((row, at) => ({ name: row.name, operator: row.operator, index: row.index, left: row, right: right[at] }));
});

/** True if a layer has other types or scales on the two sides. @param {Line} line */
export const differs = ({ left, right }) => left.state !== right.state || represented(left) !== represented(right);

/** @param {Row} row */
const represented = ({ tensor, weight }) => [tensor, weight].map((one) => (one ? `${one.element} ${one.scale} ${one.zeroPoint} ${one.scales}` : '')).join('; ');
