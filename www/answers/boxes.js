// @ts-check
/**
 * Boxes of a detector: those that are left of overlapping ones, their unit, and pairs of both
 * models. The engine has decoded the output into corners, score and class. Pure.
 */

/** @import { FoundBox } from '../types.js' */

/** Overlap from which boxes of a class are one thing, and boxes of two models are a pair. */
const overlap = 0.5;
/** Number of boxes of a model that are kept. */
const most = 100;

/**
 * Reads rows of six numbers: two corners, score and class.
 *
 * @param {ArrayLike<number>} rows
 * @returns {FoundBox[]}
 */
export function boxesOf(rows) {
  return Array.from({ length: Math.floor(rows.length / 6) }, (_, at) => {
    const [left, top, right, bottom, score, number] = Array.prototype.slice.call(rows, at * 6, at * 6 + 6);
    return { left, top, right, bottom, score, number, paired: false };
  });
}

/**
 * The intersection of two boxes over their union.
 *
 * @param {FoundBox} a
 * @param {FoundBox} b
 */
export function overlapOf(a, b) {
  const size = (/** @type {number} */ from, /** @type {number} */ to) => Math.max(to - from, 0);
  const area = (/** @type {FoundBox} */ { left, top, right, bottom }) => size(left, right) * size(top, bottom);
  const both = size(Math.max(a.left, b.left), Math.min(a.right, b.right)) * size(Math.max(a.top, b.top), Math.min(a.bottom, b.bottom));
  const all = area(a) + area(b) - both;
  return all > 0 ? both / all : 0;
}

/**
 * Non-maximum suppression: the best box of those of one class that overlap.
 *
 * @param {FoundBox[]} boxes
 */
export function suppressed(boxes) {
  /** @type {FoundBox[]} */
  const kept = [];
  for (const box of [...boxes].sort((a, b) => b.score - a.score)) {
    if (kept.length === most) break;
    if (!kept.some((other) => other.number === box.number && overlapOf(other, box) >= overlap)) kept.push(box);
  }
  return kept;
}

/**
 * Marks the boxes that both models found.
 *
 * @param {FoundBox[]} float
 * @param {FoundBox[]} quantized
 */
function pair(float, quantized) {
  const free = new Set(quantized);
  for (const box of float) {
    const [nearest] = [...free].filter(({ number }) => number === box.number).sort((a, b) => overlapOf(box, b) - overlapOf(box, a));
    if (!nearest || overlapOf(box, nearest) < overlap) continue;
    free.delete(nearest);
    box.paired = true;
    nearest.paired = true;
  }
}

/**
 * The corners as shares of the input's height and width.
 *
 * @param {FoundBox} box
 * @param {{ normalized: boolean, rowsFirst: boolean, height: number, width: number }} unit
 * @returns {FoundBox}
 */
function asShares({ left, top, right, bottom, ...rest }, { normalized, rowsFirst, height, width }) {
  const [x, y, endX, endY] = rowsFirst ? [top, left, bottom, right] : [left, top, right, bottom];
  const [wide, high] = normalized ? [1, 1] : [width, height];
  return { left: x / wide, top: y / high, right: endX / wide, bottom: endY / high, ...rest };
}

/** True for a box with an area, of which a part is in the picture. @param {FoundBox} box */
const isInside = ({ left, top, right, bottom }) => right > left && bottom > top && right > 0 && bottom > 0 && left < 1 && top < 1 && right - left < 3 && bottom - top < 3;

/**
 * The boxes of both models as shares of the input's sides. `null` if they do not lie in the
 * picture: then the output means something else.
 *
 * @param {ArrayLike<number>} float
 * @param {ArrayLike<number>} quantized
 * @param {{ height: number, width: number, rowsFirst: boolean }} input `rowsFirst`: the vertical coordinate comes first
 */
export function compareBoxes(float, quantized, { height, width, rowsFirst }) {
  const [first, second] = [suppressed(boxesOf(float)), suppressed(boxesOf(quantized))];
  const measured = first.length > 0 ? first : second;
  const sides = measured.flatMap(({ left, top, right, bottom }) => [left, top, right, bottom].map(Math.abs));
  const unit = { normalized: sides.every((side) => side <= 2), rowsFirst, height, width };
  const [a, b] = [first, second].map((boxes) => boxes.map((box) => asShares(box, unit)));
  const judged = first.length > 0 ? a : b;
  if (judged.filter(isInside).length < judged.length / 2) return null;
  pair(a, b);
  const lost = [...a, ...b].filter((box) => !box.paired);
  return { float: a, quantized: b, differs: lost.length > 0, apart: lost.reduce((sum, { score }) => sum + score, 0) };
}
