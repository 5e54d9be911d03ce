// Small detectors with heads of other kinds: masks, grids, selected rows. Their boxes are constants
// that move a little with the colours of the picture `images` [1, 3, 64, 64].

import { field, node, port, raw, tensor, whole } from './model.mjs';

const [float, int64] = [1, 7];

/** @param {string} name @param {number} value */
const int = (name, value) => field(5, [field(1, name), whole(3, value), whole(20, 2)]);
/** @param {string} name @param {number[]} values */
const ints = (name, values) => field(5, [field(1, name), ...values.map((value) => whole(8, value)), whole(20, 7)]);
/** @param {string} name @param {number[]} values @param {number[]} [shape] */
const integers = (name, values, shape = [values.length]) => tensor(name, int64, shape, [field(9, Buffer.from(new BigInt64Array(values.map(BigInt)).buffer))]);

/** @typedef {{ nodes: Buffer[][], constants: Buffer[][] }} Part */

/** Colours of the picture, as `f` [1, 3]. @type {Part} */
const colours = { nodes: [node('GlobalAveragePool', 'pool', ['images'], 'p'), node('Flatten', 'flat', ['p'], 'f')], constants: [] };

/**
 * Values with a part of the colours, in a shape.
 *
 * @param {string} name
 * @param {number[]} shape
 * @param {number[]} values
 * @param {number} [part]
 * @returns {Part}
 */
const head = (name, shape, values, part = 0.01) => ({
  nodes: [node('MatMul', `${name}_dense`, ['f', `${name}_w`], `${name}_d`), node('Add', `${name}_add`, [`${name}_d`, `${name}_b`], `${name}_a`), node('Reshape', `${name}_rows`, [`${name}_a`, `${name}_shape`], name)],
  constants: [
    tensor(`${name}_w`, float, [3, values.length], [raw(Array.from({ length: 3 * values.length }, (_, at) => (((at * 13) % 19) / 9 - 1) * part))]),
    tensor(`${name}_b`, float, [values.length], [raw(values)]), integers(`${name}_shape`, shape),
  ],
});

/** @param {Part[]} parts @param {Record<string, (number | string)[]>} outputs */
function whole64(parts, outputs) {
  const graph = [
    ...parts.flatMap(({ nodes }) => nodes).map((one) => field(1, one)), field(2, 'g'), ...parts.flatMap(({ constants }) => constants).map((one) => field(5, one)),
    field(11, port('images', [1, 3, 64, 64])), ...Object.entries(outputs).map(([name, shape]) => field(12, port(name, shape))),
  ];
  return Buffer.concat([whole(1, 8), field(7, graph), field(8, whole(2, 13)), field(14, [field(1, 'names'), field(2, "{0: 'cat', 1: 'dog'}")])]);
}

/** Zeros, and values at some places. @param {number} count @param {Record<number, number>} values @param {number} [rest] */
const sparse = (count, values, rest = 0) => Array.from({ length: count }, (_, at) => values[at] ?? rest);

/**
 * Like YOLO-seg: 64 boxes in columns with two classes and two coefficients, and two prototypes, of
 * which the first is where red is stronger than blue. One dog has that one, and one cat its opposite.
 */
export function boxesWithMasks() {
  const row = (/** @type {number} */ at, /** @type {number} */ first, /** @type {number} */ second) => ({ [at * 64 + 3]: first, [at * 64 + 40]: second });
  const boxes = head('boxes', [1, 4, 64], sparse(256, { ...row(0, 20, 44), ...row(1, 32, 32), ...row(2, 30, 30), ...row(3, 40, 50) }, 1));
  const scores = head('scores', [1, 2, 64], sparse(128, { ...row(0, -6, 3), ...row(1, 2, -6) }, -6));
  const factors = head('factors', [1, 2, 64], sparse(128, { ...row(0, 3, -3) }));
  const joined = {
    nodes: [
      node('Sigmoid', 'squash', ['scores'], 'shares'), node('Concat', 'join', ['boxes', 'shares', 'factors'], 'output0', [int('axis', 1)]),
      node('Conv', 'planes', ['images', 'plane_w'], 'output1', [ints('strides', [4, 4])]),
    ],
    constants: [tensor('plane_w', float, [2, 3, 4, 4], [raw(Array.from({ length: 96 }, (_, at) => (at < 16 ? 0.1 : at >= 32 && at < 48 ? -0.1 : at % 3 === 0 ? 0.02 : 0)))])],
  };
  return whole64([colours, boxes, scores, factors, joined], { output0: [1, 8, 64], output1: [1, 2, 16, 16] });
}

/** Like YOLOX: places in the cells of three grids of 8 x 8, 4 x 4 and 2 x 2, and logarithms of sizes. */
export function boxesInGrids() {
  const [count, cat, dog] = [84, 2 * 8 + 5, 64 + 2 * 4 + 1]; // rows of cells in strides of 8 and 16
  const places = head('places', [1, count, 4], sparse(count * 4, {
    [cat * 4]: 0.5, [cat * 4 + 1]: 0.5, [cat * 4 + 2]: Math.log(2), [cat * 4 + 3]: Math.log(3),
    [dog * 4]: 0.25, [dog * 4 + 1]: 0.5, [dog * 4 + 2]: Math.log(1.5), [dog * 4 + 3]: Math.log(0.8),
  }));
  const object = head('object', [1, count, 1], sparse(count, { [cat]: 4, [dog]: 3 }, -6));
  const classes = head('classes', [1, count, 2], sparse(count * 2, { [cat * 2]: 4, [dog * 2 + 1]: 4 }, -4));
  const joined = {
    nodes: [
      node('Sigmoid', 'object_squash', ['object'], 'object_share'), node('Sigmoid', 'class_squash', ['classes'], 'class_share'),
      node('Concat', 'join', ['places', 'object_share', 'class_share'], 'output', [int('axis', 2)]),
    ],
    constants: [],
  };
  return whole64([colours, places, object, classes, joined], { output: [1, count, 7] });
}

/** Like PicoDet: for strides 8, 16 and 32 the scores of two classes, and a distribution over eight strides for each side of a box. */
export function boxesInLevels() {
  /** A thing: its row of cells, class, and strides to each side. @type {Record<number, { cell: number, kind: number, sides: number[] }>} */
  const things = { 64: { cell: 2 * 8 + 4, kind: 0, sides: [2, 1, 2, 3] }, 16: { cell: 4 + 2, kind: 1, sides: [1, 1, 1, 2] } };
  const levels = [64, 16, 4].map((cells) => {
    const { cell, kind, sides } = things[cells] ?? { cell: 0, kind: 0, sides: [] };
    const logits = head(`logits${cells}`, [1, cells, 2], sparse(cells * 2, sides.length > 0 ? { [cell * 2 + kind]: 3 } : {}, -6));
    const peaks = Object.fromEntries(sides.map((strides, side) => [cell * 32 + side * 8 + strides, 14]));
    return [logits, head(`distances${cells}`, [1, cells, 32], sparse(cells * 32, peaks)), { nodes: [node('Sigmoid', `squash${cells}`, [`logits${cells}`], `scores${cells}`)], constants: [] }];
  });
  const outputs = [64, 16, 4].flatMap((cells) => [[`scores${cells}`, [1, cells, 2]], [`distances${cells}`, [1, cells, 32]]]);
  return whole64([colours, ...levels.flat()], Object.fromEntries(outputs));
}

/** Like YOLOv7 with its selection inside: rows of batch, two corners, class and score. */
export function selectedBoxes() {
  const corners = head('corners', [1, 4, 4], [8, 8, 30, 30, 34, 20, 60, 60, 9, 9, 31, 31, 0, 0, 4, 4]);
  const logits = head('logits', [1, 2, 4], [3, -6, 2, -6, -6, 2, -6, -6]);
  const chosen = {
    nodes: [
      node('Sigmoid', 'squash', ['logits'], 'shares'), node('NonMaxSuppression', 'select', ['corners', 'shares', 'most', 'overlap', 'least'], 'places'),
      ...['batch', 'class', 'box'].map((name) => node('Gather', `take_${name}`, ['places', `of_${name}`], `${name}_numbers`, [int('axis', 1)])),
      ...['batch', 'class'].map((name) => node('Cast', `cast_${name}`, [`${name}_numbers`], name, [int('to', float)])),
      node('Reshape', 'flatten_boxes', ['corners', 'four'], 'rows'), node('Gather', 'take_rows', ['rows', 'box_numbers'], 'taken'),
      node('Transpose', 'turn', ['shares'], 'turned', [ints('perm', [0, 2, 1])]), node('Reshape', 'flatten_scores', ['turned', 'two'], 'by_box'),
      node('Gather', 'take_scores', ['by_box', 'box_numbers'], 'both'), node('ReduceMax', 'greatest', ['both'], 'score', [ints('axes', [1])]),
      node('Concat', 'join', ['batch', 'taken', 'class', 'score'], 'output', [int('axis', 1)]),
    ],
    constants: [
      integers('most', [10]), tensor('overlap', float, [1], [raw([0.5])]), tensor('least', float, [1], [raw([0.3])]),
      integers('of_batch', [0]), integers('of_class', [1]), integers('of_box', [2], []), integers('four', [4, 4]), integers('two', [4, 2]),
    ],
  };
  return whole64([colours, corners, logits, chosen], { output: ['found', 7] });
}
