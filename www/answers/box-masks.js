// @ts-check
/** Masks of boxes: sums of prototypes, a plane each, weighted by the coefficients of a box. Pure. */

/** @import { BoxMask, FoundBox, OutputTensor } from '../types.js' */

/**
 * The pixels of a thing inside its box, at the resolution of the prototypes. A pixel belongs to it
 * where the sum is above 0, which a sigmoid makes a half.
 *
 * @param {FoundBox} box as shares of the input's sides
 * @param {number[]} coefficients
 * @param {OutputTensor} prototypes [1, count, height, width]
 * @returns {BoxMask}
 */
export function maskOf({ left, top, right, bottom }, coefficients, { data, shape }) {
  const [height, width] = shape.slice(-2);
  const within = (/** @type {number} */ place, /** @type {number} */ most) => Math.min(Math.max(place, 0), most);
  const [x, y] = [within(Math.floor(left * width), width), within(Math.floor(top * height), height)];
  const [columns, rows] = [within(Math.ceil(right * width), width) - x, within(Math.ceil(bottom * height), height) - y].map((size) => Math.max(size, 0));
  const pixels = new Uint8Array(columns * rows);
  for (let at = 0; at < pixels.length; at += 1) {
    const from = (y + Math.floor(at / columns)) * width + x + (at % columns);
    let sum = 0;
    for (const [plane, factor] of coefficients.entries()) sum += factor * Number(data[plane * height * width + from]);
    pixels[at] = Number(sum > 0);
  }
  return { x, y, columns, rows, pixels, height, width };
}

/**
 * The pixels that two masks share over those of either; 1 where there is nothing to compare.
 *
 * @param {BoxMask | undefined} a
 * @param {BoxMask | undefined} b
 */
export function masksOverlap(a, b) {
  if (!a || !b) return 1;
  let [both, either] = [0, 0];
  const has = (/** @type {BoxMask} */ { x, y, columns, rows, pixels }, /** @type {number} */ column, /** @type {number} */ row) => column >= x && row >= y && column < x + columns && row < y + rows && pixels[(row - y) * columns + column - x] === 1;
  for (let row = Math.min(a.y, b.y); row < Math.max(a.y + a.rows, b.y + b.rows); row += 1) {
    for (let column = Math.min(a.x, b.x); column < Math.max(a.x + a.columns, b.x + b.columns); column += 1) {
      const [first, second] = [has(a, column, row), has(b, column, row)];
      both += Number(first && second);
      either += Number(first || second);
    }
  }
  return either > 0 ? both / either : 1;
}
