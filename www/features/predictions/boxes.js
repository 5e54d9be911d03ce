// @ts-check
/** Boxes of a detector over the picture, and their masks. A box that only one model has is dashed and says so. */

import { h } from '../../library/dom.js';
import { percent, plural } from '../../library/format.js';
import { colourOf, hueOf } from './colours.js';
import { canvasOf, painted, seenPicture } from './picture.js';
import { shownAt } from './placement.js';

/** @import { BoxesAnswer, BoxMask, FoundBox } from '../../types.js' */
/** @import { Part } from './words.js' */
/** @import { SeenPicture } from './picture.js' */

/** Opacity of a mask, of 255. */
const opacity = 130;

/** @type {Part<BoxesAnswer>} */
export async function boxes({ sample, answer, naming }) {
  const seen = await seenPicture(sample, answer);
  return [['Float', answer.float], ['Quantized', answer.quantized]].map(([title, found]) => one(String(title), /** @type {FoundBox[]} */ (found), seen, naming));
}

/** @param {string} title @param {FoundBox[]} found @param {SeenPicture | null} seen @param {(number: number) => string} naming */
function one(title, found, seen, naming) {
  const named = found.map((box) => `${naming(box.number)} ${percent(box.score)}${box.paired ? '' : `, only ${title.toLowerCase()}`}`);
  const label = `${title}: ${found.length === 0 ? 'no box' : named.join('; ')}`;
  const picture = seen ? canvasOf(seen, label, (context, width, height) => found.forEach((box, at) => draw(context, box, named[at], seen, width, height))) : null;
  const rest = h('details', {}, h('summary', {}, plural(found.length, 'box', 'boxes')), h('ul', {}, ...named.map((text) => h('li', {}, text))));
  return h('figure', {}, h('figcaption', {}, title), picture, found.length === 0 ? h('p', { class: 'note' }, 'No box.') : rest);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {FoundBox} box
 * @param {string} text
 * @param {SeenPicture} seen
 * @param {number} width
 * @param {number} height
 */
function draw(context, { left, top, right, bottom, number, paired, mask }, text, seen, width, height) {
  const { target } = seen;
  if (mask) paint(context, mask, number, seen, width, height);
  const [from, to] = [shownAt(left, top, target), shownAt(right, bottom, target)];
  const colour = `hsl(${hueOf(number)} 90% 60%)`;
  const place = [from.x * width, from.y * height, (to.x - from.x) * width, (to.y - from.y) * height];
  context.setLineDash(paired ? [] : [10, 7]);
  for (const [style, line] of [['#000', 5], [colour, 3]]) {
    context.strokeStyle = String(style);
    context.lineWidth = Number(line);
    context.strokeRect(place[0], place[1], place[2], place[3]);
  }
  context.font = '600 17px system-ui, sans-serif';
  const wide = context.measureText(text).width + 8;
  const [x, y] = [Math.min(Math.max(place[0], 0), Math.max(width - wide, 0)), Math.max(place[1] - 22, 0)];
  context.fillStyle = colour;
  context.fillRect(x, y, wide, 22);
  context.fillStyle = '#000';
  context.fillText(text, x + 4, y + 17);
}

/**
 * Colours the pixels of a thing.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {BoxMask} mask
 * @param {number} number
 * @param {SeenPicture} seen
 * @param {number} width
 * @param {number} height
 */
function paint(context, { x, y, columns, rows, pixels, ...whole }, number, { target }, width, height) {
  if (pixels.length === 0) return;
  const colour = colourOf(number);
  const [from, to] = [shownAt(x / whole.width, y / whole.height, target), shownAt((x + columns) / whole.width, (y + rows) / whole.height, target)];
  const coloured = painted({ height: rows, width: columns }, (at) => [...colour, pixels[at] * opacity]);
  context.drawImage(coloured, from.x * width, from.y * height, (to.x - from.x) * width, (to.y - from.y) * height);
}
