// @ts-check
/**
 * Tests whether two figures differ by more than chance: times by their bands, shares by the number
 * of samples that differ. Pure, so that all views agree.
 */

import { percent } from '../../library/format.js';

/** @typedef {{ median: number, p10: number, p90: number }} Band what was measured several times */
/** @typedef {{ text: string, kind: '' | 'good' | 'bad' }} Verdict */

/** Fewest samples with another outcome for a significant difference: 2 · ½⁶ is 3 %. */
const fewest = 6;

/** Times differ if their bands don't overlap. @param {Band} one @param {Band} other */
export const timesDiffer = (one, other) => one.p10 > other.p90 || other.p10 > one.p90;

/**
 * Compares the times of two results, each measured together with the float model. If the float
 * times differ, the machine was in another state, and there is no verdict.
 *
 * @param {Record<string, number>} one what was measured of a result
 * @param {Record<string, number>} other
 */
export function runsDiffer(one, other) {
  const band = (/** @type {Record<string, number>} */ { ms, msLow = ms, msHigh = ms }) => ({ median: ms, p10: msLow, p90: msHigh });
  const float = (/** @type {Record<string, number>} */ { floatMs, floatLow = floatMs, floatHigh = floatMs }) => ({ median: floatMs, p10: floatLow, p90: floatHigh });
  return timesDiffer(band(one), band(other)) && !(one.floatMs && other.floatMs && timesDiffer(float(one), float(other)));
}

/** @param {number} one @param {number} other shares @param {number} samples */
export const sharesDiffer = (one, other, samples) => Math.round(Math.abs(one - other) * samples) >= fewest;

/** @param {number} by @param {(by: number) => string} text */
export const signed = (by, text) => `${by > 0 ? '+' : '−'}${text(Math.abs(by))}`;

/**
 * The change from the previous result.
 *
 * @param {number} is
 * @param {number} was
 * @param {{ text: (by: number) => string, moreIsBetter: boolean, differ?: boolean, least?: number }} how `differ`: whether that can be
 *   told from chance; `least`: what is less than this is no change
 * @returns {Verdict}
 */
export function changed(is, was, { text, moreIsBetter, differ = true, least = 0 }) {
  const by = is - was;
  if (Math.abs(by) <= least) return { text: 'unchanged', kind: '' };
  if (!differ) return { text: 'no significant difference from the previous result', kind: '' };
  const better = by > 0 === moreIsBetter;
  return { text: `${signed(by, text)} compared to the previous result, ${better ? 'better' : 'worse'}`, kind: better ? 'good' : 'bad' };
}

/**
 * The time of a quantized model relative to the float model.
 *
 * @param {Band} quantized
 * @param {Band} float
 * @returns {Verdict & { ratio: number }}
 */
export function compareTimes(quantized, float) {
  const ratio = quantized.median / float.median;
  if (!timesDiffer(quantized, float)) return { ratio, text: 'no significant difference', kind: '' };
  return { ratio, text: `${ratio > 1 ? 'slower' : 'faster'}, ${ratio.toFixed(2)} × the float time`, kind: ratio > 1 ? 'bad' : 'good' };
}

/**
 * Accuracy of the float model and the quantized one.
 *
 * @param {number} float
 * @param {number} quantized
 * @param {number} samples
 * @returns {Verdict}
 */
export function compareAccuracy(float, quantized, samples) {
  const text = `accuracy; ${percent(float)} in float`;
  if (quantized === float) return { text, kind: '' };
  if (!sharesDiffer(float, quantized, samples)) return { text: `${text}: too few samples to tell a difference`, kind: '' };
  return { text, kind: quantized < float ? 'bad' : 'good' };
}
