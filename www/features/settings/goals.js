// @ts-check
/** Goals in place of schemes: the settings that serve each, with and without samples. */

import { canonical } from '../../settings-document.js';

/** @import { ModelSummary, Settings } from '../../types.js' */

/** @typedef {'balanced' | 'fastest' | 'smallest' | 'closest'} GoalName */

/**
 * `bytes`: the forecast size; `null` while it is unknown.
 *
 * @typedef {{ name: GoalName, title: string, what: string, document: Settings, bytes: number | null }} Goal
 */

/** Sizes of schemes without samples, and the share of the nodes that can be quantized which each changes. @typedef {Record<string, { bytes: number | null, changed: number }>} Sizes */

/** Settings that need no samples, by the names under which their sizes are forecast. @type {Record<string, Settings>} */
export const forms = {
  blocks: { scheme: 'blocks' },
  weights: { scheme: 'weights' },
  dynamic: { scheme: 'dynamic' },
  float16: { scheme: 'float16' },
};

/** Share of quantized nodes from which a scheme at run time pays. */
const worthwhile = 0.5;

/** True for operators whose products `dynamic` computes on integers well. @param {ModelSummary} card */
function isOfProducts({ operators }) {
  const count = (/** @type {string[]} */ ...names) => operators.reduce((sum, [name, times]) => sum + (names.includes(name) ? times : 0), 0);
  return count('MatMul', 'Gemm', 'LSTM', 'GRU', 'Attention', 'MultiHeadAttention') > count('Conv', 'ConvTranspose');
}

/** @param {ModelSummary} card @param {Sizes | null} sizes @returns {Goal} */
function smallest(card, sizes) {
  const [blocks, weights] = [sizes?.blocks?.bytes ?? null, sizes?.weights?.bytes ?? null];
  const inBlocks = blocks !== null && weights !== null ? blocks < weights : isOfProducts(card);
  return inBlocks
    ? { name: 'smallest', title: 'Smallest', what: '4-bit weights in blocks, computed in float', document: forms.blocks, bytes: blocks }
    : { name: 'smallest', title: 'Smallest', what: '8-bit weights, computed in float', document: forms.weights, bytes: weights };
}

/** @param {Sizes | null} sizes @returns {Goal} */
const closest = (sizes) => ({ name: 'closest', title: 'Closest', what: 'half precision, no integers', document: forms.float16, bytes: sizes?.float16?.bytes ?? null });

/**
 * The goals for a model.
 *
 * @param {ModelSummary} card
 * @param {{ samples: boolean, sizes: Sizes | null, calibrated: number | null }} known `calibrated`: the
 *   forecast size of a static model
 * @returns {Goal[]}
 */
export function goalsOf(card, { samples, sizes, calibrated }) {
  if (samples) {
    return [
      { name: 'balanced', title: 'Balanced', what: '8 bits, and 16 where 8 are too coarse', document: {}, bytes: calibrated },
      { name: 'fastest', title: 'Fastest', what: '8 bits everywhere', document: { guard: false }, bytes: calibrated },
      smallest(card, sizes), closest(sizes),
    ];
  }
  const products = isOfProducts(card) && (sizes?.dynamic?.changed ?? 1) >= worthwhile;
  return [
    smallest(card, sizes),
    products
      ? { name: 'fastest', title: 'Fastest', what: '8-bit products, on processors', document: forms.dynamic, bytes: sizes?.dynamic?.bytes ?? null }
      : { name: 'fastest', title: 'Fastest', what: '8-bit integers throughout; add samples for their ranges', document: {}, bytes: null },
    closest(sizes),
  ];
}

/** The goal that a document serves. @param {Goal[]} goals @param {Settings} document */
export const goalOf = (goals, document) => goals.find((goal) => canonical(goal.document) === canonical(document));
