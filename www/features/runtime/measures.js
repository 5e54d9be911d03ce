// @ts-check
/** Distances between tensors, and the middle of some times. Pure. */

/** @import { OutputTensor } from '../../types.js' */

/**
 * Sums over two tensors, which can be added over samples. `foreign`: elements that are finite in one
 * of them only.
 *
 * @typedef {{ signal: number, noise: number, foreign: number, same: number, rows: number }} Sums
 */

/** @type {Sums} */
export const nothing = { signal: 0, noise: 0, foreign: 0, same: 0, rows: 0 };

/** @param {Sums} one @param {Sums} other @returns {Sums} */
export const added = (one, other) => ({
  signal: one.signal + other.signal, noise: one.noise + other.noise, foreign: one.foreign + other.foreign,
  same: one.same + other.same, rows: one.rows + other.rows,
});

/**
 * Compares a tensor with its reference. `centred`: the signal is what varies, so that the zero point
 * of integers does not count.
 *
 * @param {OutputTensor} reference
 * @param {OutputTensor} other
 * @param {{ centred?: boolean }} [how]
 * @returns {Sums}
 */
export function compared(reference, other, { centred = false } = {}) {
  const [a, b] = [reference.data, other.data];
  if (a.length !== b.length) return { ...nothing, foreign: Math.max(a.length, b.length, 1) };
  const mean = centred ? average(a) : 0;
  const sums = { ...nothing };
  for (let at = 0; at < a.length; at += 1) {
    const [x, y] = [Number(a[at]), Number(b[at])];
    if (Number.isFinite(x) && Number.isFinite(y)) {
      sums.signal += (x - mean) * (x - mean);
      sums.noise += (x - y) * (x - y);
    } else if (!Object.is(x, y)) sums.foreign += 1;
  }
  const width = reference.shape.at(-1) ?? 1;
  if (width > 1) {
    for (let start = 0; start + width <= a.length; start += width) {
      sums.rows += 1;
      if (greatest(a, start, width) === greatest(b, start, width)) sums.same += 1;
    }
  }
  return sums;
}

/** @param {ArrayLike<number | bigint>} values */
function average(values) {
  let [sum, count] = [0, 0];
  for (let at = 0; at < values.length; at += 1) {
    const value = Number(values[at]);
    if (Number.isFinite(value)) [sum, count] = [sum + value, count + 1];
  }
  return count > 0 ? sum / count : 0;
}

/** Place of the greatest of some values, the first of equal ones. @param {ArrayLike<number | bigint>} values @param {number} start @param {number} width */
function greatest(values, start, width) {
  let best = start;
  for (let at = start + 1; at < start + width; at += 1) if (values[at] > values[best]) best = at;
  return best - start;
}

/**
 * Signal over noise in decibels: 200 and more for equal tensors, minus infinity where one of them has
 * other infinities.
 *
 * @param {Sums} sums
 */
export function decibels({ signal, noise, foreign }) {
  if (foreign > 0) return -Infinity;
  if (noise === 0) return 200;
  return signal === 0 ? -Infinity : Math.min(200, 10 * Math.log10(signal / noise));
}

/**
 * True if a node computed the same, except for its rounding: integers one step apart, floats in their
 * last digits.
 *
 * @param {OutputTensor} reference
 * @param {OutputTensor} other
 */
export function roundedAlike(reference, other) {
  const [a, b] = [reference.data, other.data];
  if (a.length !== b.length) return false;
  if (decibels(compared(reference, other, { centred: true })) >= 45) return true;
  if (/^(float|double|bfloat)/.test(reference.element)) return false;
  let far = 0;
  for (let at = 0; at < a.length; at += 1) if (Math.abs(Number(a[at]) - Number(b[at])) > 1) far += 1;
  return far <= a.length / 200;
}

/** Median, 10 % and 90 % of some times. @param {number[]} times @returns {[number, number, number]} */
export function middle(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (/** @type {number} */ part) => {
    const place = (sorted.length - 1) * part;
    const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
    return low + (high - low) * (place - Math.floor(place));
  };
  return sorted.length > 0 ? [at(0.5), at(0.1), at(0.9)] : [NaN, NaN, NaN];
}
