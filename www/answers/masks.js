// @ts-check
/** Masks of a segmenter: the class of each pixel, and the share of pixels that agree. Pure. */

/** @import { OutputTensor } from '../types.js' */

/** Longest side of a mask that is kept for display. */
const longest = 320;
/** Share of equal pixels below which two masks count as different. */
const alike = 0.95;

/**
 * Form of a mask in an output. `pixel` and `plane`: the distances of the values of two pixels and of
 * two classes.
 *
 * @typedef {{ height: number, width: number, classes: number, pixel: number, plane: number }} Form
 */

/**
 * The form of an output with a score for each class and pixel, or a number for each pixel; `null`
 * for other outputs.
 *
 * @param {number[]} shape
 * @param {boolean} lastAxis true where the channels of pictures are the last axis
 * @returns {Form | null}
 */
export function maskForm(shape, lastAxis) {
  const [a, b, c] = shape.slice(shape.length - 3);
  const batch = shape.slice(0, -3).reduce((all, size) => all * size, 1);
  const fits = (/** @type {number} */ height, /** @type {number} */ width) => height > 3 && width > 3;
  if (shape.length === 3 && a === 1 && fits(b, c)) return { height: b, width: c, classes: 1, pixel: 1, plane: 0 };
  if (shape.length === 2 && fits(shape[0], shape[1])) return { height: shape[0], width: shape[1], classes: 1, pixel: 1, plane: 0 };
  if (shape.length !== 4 || batch !== 1) return null;
  if (lastAxis || (c === 1 && a > 3)) return fits(a, b) ? { height: a, width: b, classes: c, pixel: c, plane: 1 } : null;
  return fits(b, c) ? { height: b, width: c, classes: a, pixel: 1, plane: b * c } : null;
}

/**
 * The class of each pixel. With one channel, class 1 is where the score is above its middle.
 *
 * @param {OutputTensor['data']} data
 * @param {Form} form
 * @param {{ whole: boolean, middle: number }} scores `whole`: values are numbers of classes
 */
function classesOf(data, { height, width, classes, pixel, plane }, { whole, middle }) {
  const mask = new Uint16Array(height * width);
  for (let at = 0; at < mask.length; at += 1) {
    const from = at * pixel;
    if (classes === 1) {
      const value = Number(data[from]);
      mask[at] = whole ? value : Number(value > middle);
      continue;
    }
    let best = 0;
    for (let one = 1; one < classes; one += 1) if (data[from + one * plane] > data[from + best * plane]) best = one;
    mask[at] = best;
  }
  return mask;
}

/** A mask with fewer pixels, by the nearest one. @param {Uint16Array} mask @param {Form} form */
function reduced(mask, { height, width }) {
  const factor = Math.min(1, longest / Math.max(height, width));
  const [high, wide] = [Math.max(1, Math.round(height * factor)), Math.max(1, Math.round(width * factor))];
  const small = new Uint16Array(high * wide);
  for (let y = 0; y < high; y += 1) {
    const row = Math.floor(((y + 0.5) * height) / high) * width;
    for (let x = 0; x < wide; x += 1) small[y * wide + x] = mask[row + Math.floor(((x + 0.5) * width) / wide)];
  }
  return { height: high, width: wide, mask: small };
}

/**
 * The masks of both models.
 *
 * @param {OutputTensor} float
 * @param {OutputTensor} quantized
 * @param {Form} form
 */
export function compareMasks(float, quantized, form) {
  const whole = !/float/i.test(float.element);
  // Logits are cut at 0, probabilities at a half.
  const logits = !whole && Array.prototype.some.call(float.data, (/** @type {number} */ value) => value < 0 || value > 1);
  const scores = { whole, middle: logits ? 0 : 0.5 };
  const [a, b] = [float, quantized].map(({ data }) => classesOf(data, form, scores));
  /** @type {Map<number, [number, number]>} pixels of each class in both */
  const counts = new Map();
  let same = 0;
  for (let at = 0; at < a.length; at += 1) {
    same += Number(a[at] === b[at]);
    for (const [side, number] of [a[at], b[at]].entries()) {
      const count = counts.get(number) ?? [0, 0];
      count[side] += 1;
      counts.set(number, count);
    }
  }
  const agreement = a.length > 0 ? same / a.length : 1;
  const shares = [...counts].map(([number, [first, second]]) => ({ number, float: first / a.length, quantized: second / a.length }));
  shares.sort((one, other) => Math.max(other.float, other.quantized) - Math.max(one.float, one.quantized));
  const [first, second] = [reduced(a, form), reduced(b, form)];
  return {
    height: first.height, width: first.width, float: first.mask, quantized: second.mask, agreement, shares,
    binary: form.classes === 1 && !whole, differs: agreement < alike, apart: 1 - agreement,
  };
}
