// @ts-check
/** Masks over the picture, the places where they differ, and the shares of the classes. */

import { h } from '../../library/dom.js';
import { percent } from '../../library/format.js';
import { table } from '../../library/table.js';
import { colourOf } from './colours.js';
import { canvasOf, painted, seenPicture } from './picture.js';

/** @import { MaskAnswer, PictureAnswer } from '../../types.js' */
/** @import { Part } from './words.js' */
/** @import { Colouring, SeenPicture } from './picture.js' */

/** Opacity of a mask, of 255, and the number of classes in the table. */
const [opacity, listed] = [150, 12];

/** @type {Part<MaskAnswer>} */
export async function masks({ sample, answer, naming }) {
  const seen = await seenPicture(sample, answer.frame);
  const { float, quantized, binary, shares } = answer;
  // Class 0 is the ground of most models, and stays without a colour.
  const coloured = (/** @type {Uint16Array} */ mask) => (/** @type {number} */ at) => /** @type {[number, number, number, number]} */ ([...colourOf(mask[at]), mask[at] === 0 ? 0 : opacity]);
  const unlike = (/** @type {number} */ at) => /** @type {[number, number, number, number]} */ (float[at] === quantized[at] ? [0, 0, 0, 190] : [255, 255, 255, 255]);
  const named = (/** @type {number} */ number) => (binary ? (number === 1 ? 'the object' : 'the ground') : naming(number));
  const rows = shares.slice(0, listed).map((one) => [swatch(one.number), named(one.number), percent(one.float), percent(one.quantized)]);
  return [
    picture('Float', seen, answer, coloured(float)),
    picture('Quantized', seen, answer, coloured(quantized)),
    picture('Where they differ (white)', seen, answer, unlike),
    h('div', { class: 'shares' }, table(['Colour', 'Class', 'Float', 'Quantized'], rows, [2, 3]), shares.length > listed && h('p', { class: 'note' }, `and ${shares.length - listed} more classes`)),
  ];
}

/** @param {number} number */
function swatch(number) {
  const box = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  if (number !== 0) box.style.background = `rgb(${colourOf(number).map(Math.round).join(' ')})`;
  return box;
}

/** @param {string} title @param {SeenPicture | null} seen @param {{ height: number, width: number }} size @param {Colouring} colouring */
function picture(title, seen, size, colouring) {
  const mask = painted(size, colouring);
  const paint = (/** @type {CanvasRenderingContext2D} */ context, /** @type {number} */ width, /** @type {number} */ height) => {
    const { x, y, width: wide, height: high } = seen?.target ?? { x: 0, y: 0, width: 1, height: 1 };
    context.imageSmoothingEnabled = false;
    context.drawImage(mask, x * size.width, y * size.height, wide * size.width, high * size.height, 0, 0, width, height);
  };
  return h('figure', {}, h('figcaption', {}, title), seen ? canvasOf(seen, `${title}: mask over the picture`, paint) : mask);
}

/** Pictures that the models made, on one scale. @type {Part<PictureAnswer>} */
export async function pictures({ sample, answer }) {
  const { float, quantized, pixel, plane } = answer;
  const seen = await seenPicture(sample);
  let [low, high] = [Infinity, -Infinity];
  for (const value of float) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const level = (/** @type {number} */ value) => ((value - low) / (high - low || 1)) * 255;
  const made = (/** @type {Float32Array} */ values) => painted(answer, (at) => [level(values[at * pixel]), level(values[at * pixel + plane]), level(values[at * pixel + 2 * plane]), 255]);
  const figure = (/** @type {string} */ title, /** @type {HTMLCanvasElement} */ canvas) => h('figure', {}, h('figcaption', {}, title), canvas);
  return [...(seen ? [figure('Input', canvasOf(seen, 'The input'))] : []), figure('Float', made(float)), figure('Quantized', made(quantized))];
}
