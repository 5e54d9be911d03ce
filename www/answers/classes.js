// @ts-check
/** Classes with their probabilities, from the scores of a model. Pure. */

/** @import { RankedClass } from '../types.js' */

/** Number of classes that are shown. */
const shown = 5;

/**
 * True for scores that are no probabilities yet: outside of 0 to 1.
 *
 * @param {ArrayLike<number>} scores
 */
export const areLogits = (scores) => Array.prototype.some.call(scores, (/** @type {number} */ score) => score < 0 || score > 1);

/**
 * The softmax of scores.
 *
 * @param {ArrayLike<number>} scores
 */
export function softmax(scores) {
  let most = -Infinity;
  for (let at = 0; at < scores.length; at += 1) most = Math.max(most, scores[at]);
  const powers = Float64Array.from(scores, (score) => Math.exp(score - most));
  const sum = powers.reduce((all, power) => all + power, 0);
  return powers.map((power) => power / sum);
}

/**
 * The best classes, the best first; of equal ones the first.
 *
 * @param {ArrayLike<number>} scores
 * @param {boolean} logits
 * @returns {RankedClass[]}
 */
export function best(scores, logits) {
  const shares = logits ? softmax(scores) : scores;
  /** @type {RankedClass[]} */
  const ranked = [];
  for (let at = 0; at < shares.length; at += 1) {
    if (ranked.length === shown && !(shares[at] > ranked[shown - 1].share)) continue;
    const place = ranked.findIndex(({ share }) => shares[at] > share);
    ranked.splice(place < 0 ? ranked.length : place, 0, { number: at, share: shares[at] });
    ranked.length = Math.min(ranked.length, shown);
  }
  return ranked;
}

/**
 * The answers of a classifier. `shares`: they are probabilities, and no other scores; `apart`: the difference of their best shares.
 *
 * @param {ArrayLike<number>} float
 * @param {ArrayLike<number>} quantized
 */
export function compareClasses(float, quantized) {
  const logits = areLogits(float);
  const both = { float: best(float, logits), quantized: best(quantized, logits) };
  const [first, second] = [both.float[0], both.quantized[0]];
  const differs = first?.number !== second?.number;
  let sum = 0;
  for (let at = 0; at < float.length; at += 1) sum += float[at];
  const shares = logits || Math.abs(sum - 1) < 0.02;
  return { ...both, shares, differs, apart: Math.abs((first?.share ?? 0) - (second?.share ?? 0)) };
}
