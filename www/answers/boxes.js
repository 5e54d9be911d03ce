// @ts-check
/**
 * Boxes of a detector: those that are left of overlapping ones, their unit, and pairs of both
 * models. The engine has decoded the output into corners, score and class. Pure.
 */

import { maskOf, masksOverlap } from './box-masks.js';

/** @import { FoundBox, OutputTensor } from '../types.js' */
/** @typedef {FoundBox & { coefficients: number[] }} ReadBox with the factors of the prototypes of masks */

/** Overlap from which boxes of a class are one thing, and boxes of two models are a pair. */
const overlap = 0.5;
/** Number of boxes of a model that are kept. */
const most = 100;

/**
 * Reads rows of two corners, score and class, and of factors of prototypes.
 *
 * @param {ArrayLike<number>} rows
 * @param {number} [prototypes] their number
 * @returns {ReadBox[]}
 */
export function boxesOf(rows, prototypes = 0) {
  const width = 6 + prototypes;
  return Array.from({ length: Math.floor(rows.length / width) }, (_, at) => {
    const [left, top, right, bottom, score, number, ...coefficients] = Array.prototype.slice.call(rows, at * width, at * width + width);
    return { left, top, right, bottom, score, number, paired: false, coefficients };
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
 * @template {FoundBox} T
 * @param {T[]} boxes
 */
export function suppressed(boxes) {
  /** @type {T[]} */
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
    if (!nearest || overlapOf(box, nearest) < overlap || masksOverlap(box.mask, nearest.mask) < overlap) continue;
    free.delete(nearest);
    box.paired = true;
    nearest.paired = true;
  }
}

/**
 * The corners as shares of the input's height and width, and the mask.
 *
 * @param {ReadBox} box
 * @param {{ normalized: boolean, rowsFirst: boolean, height: number, width: number }} unit
 * @param {OutputTensor} [prototypes]
 * @returns {FoundBox}
 */
function asShares({ left, top, right, bottom, coefficients, ...rest }, { normalized, rowsFirst, height, width }, prototypes) {
  const [x, y, endX, endY] = rowsFirst ? [top, left, bottom, right] : [left, top, right, bottom];
  const [wide, high] = normalized ? [1, 1] : [width, height];
  const box = { left: x / wide, top: y / high, right: endX / wide, bottom: endY / high, ...rest };
  return prototypes ? { ...box, mask: maskOf(box, coefficients, prototypes) } : box;
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
 * @param {OutputTensor[]} [prototypes] of the masks of both models
 */
export function compareBoxes(float, quantized, { height, width, rowsFirst }, prototypes = []) {
  const count = prototypes[0]?.shape.at(-3);
  const [first, second] = [suppressed(boxesOf(float, count)), suppressed(boxesOf(quantized, count))];
  const measured = first.length > 0 ? first : second;
  const sides = measured.flatMap(({ left, top, right, bottom }) => [left, top, right, bottom].map(Math.abs));
  const unit = { normalized: sides.every((side) => side <= 2), rowsFirst, height, width };
  const [a, b] = [first, second].map((boxes, which) => boxes.map((box) => asShares(box, unit, prototypes[which])));
  const judged = first.length > 0 ? a : b;
  if (judged.filter(isInside).length < judged.length / 2) return null;
  pair(a, b);
  const lost = [...a, ...b].filter((box) => !box.paired);
  return { float: a, quantized: b, differs: lost.length > 0, apart: lost.reduce((sum, { score }) => sum + score, 0) };
}
