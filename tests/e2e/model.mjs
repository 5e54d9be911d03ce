// Small models and samples, written byte by byte.

import { crc32, deflateSync } from 'node:zlib';

/** @param {number} number @returns {Buffer} */
function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}

/** @param {number} number @param {Buffer | string | Buffer[]} content a length-delimited protobuf field */
export function field(number, content) {
  const bytes = Array.isArray(content) ? Buffer.concat(content) : Buffer.from(content);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

/** @param {number} number @param {number} value */
export const whole = (number, value) => Buffer.concat([varint(number * 8), varint(value)]);

/** @typedef {(number | string)[]} Shape a name where the size is open */

/** @param {string} name @param {Shape} shape @param {number} [type] of the elements */
export function port(name, shape, type = float) {
  const dims = shape.map((size) => field(1, typeof size === 'number' ? whole(1, size) : field(2, size)));
  return [field(1, name), field(2, field(1, [whole(1, type), field(2, dims)]))];
}

const [float, uint8, int64] = [1, 2, 7];

/** @param {string} name @param {number} type @param {number[]} dims @param {Buffer[]} content */
export const tensor = (name, type, dims, content) => [...dims.map((size) => whole(1, size)), whole(2, type), field(8, name), ...content];

/** @param {number[]} values */
export const raw = (values) => field(9, Buffer.from(new Float32Array(values).buffer));

/** @param {string} operator @param {string} name @param {string[]} inputs @param {string} output @param {Buffer[]} [attributes] */
export const node = (operator, name, inputs, output, attributes = []) => [
  ...inputs.map((input) => field(1, input)), field(2, output), field(3, name), field(4, operator), ...attributes,
];

/**
 * @param {Buffer[][]} nodes
 * @param {Buffer[][]} constants
 * @param {Ports} ports
 * @param {Record<string, Shape>} [more] further outputs
 * @returns {Buffer}
 */
function model(nodes, constants, { x, y, output = 'y' }, more = {}) {
  const graph = [
    ...nodes.map((one) => field(1, one)), field(2, 'g'), ...constants.map((one) => field(5, one)),
    field(11, port('x', x)), field(12, port(output, y)), ...Object.entries(more).map(([name, shape]) => field(12, port(name, shape))),
  ];
  return Buffer.concat([whole(1, 8), field(7, graph), field(8, whole(2, 13))]);
}

/** @typedef {{ x: Shape, y: Shape, output?: string }} Ports shapes, and the name of `y` where it has another */

/** @type {Ports} */
const small = { x: [1, 3, 4, 4], y: [1, 2, 4, 4] };
const pads = [field(5, [field(1, 'pads'), ...[1, 1, 1, 1].map((size) => whole(8, size)), whole(20, 7)])];
const weight = tensor('w', float, [2, 3, 3, 3], [raw(Array.from({ length: 54 }, (_, i) => ((i * 11) % 23) / 11.5 - 1))]);
const convolve = (/** @type {string} */ from) => node('Conv', 'conv', [from, 'w'], 'c', pads);

/** A convolution and a Relu: `x` [1, 3, 4, 4] to `y` [1, 2, 4, 4]. */
export const convolution = (ports = small) => model([convolve('x'), node('Relu', 'relu', ['c'], 'y')], [weight], ports);

/**
 * The convolution with multiples of 1/8 as weights: sums of products are exact in any order, so all
 * engines agree.
 */
export const exact = () => model(
  [node('Conv', "it's conv", ['x', 'w'], 'c', pads), node('Relu', 'relu', ['c'], 'y')],
  [tensor('w', float, [2, 3, 3, 3], [raw(Array.from({ length: 54 }, (_, i) => (((i * 11) % 23) - 11) / 8))])], small);

/** @param {number} rows @param {number} columns @param {number} seed */
const matrix = (rows, columns, seed) => Array.from({ length: rows * columns }, (_, i) => (((i + seed) * 2654435761) % 1009) / 1009 - 0.5);

/**
 * An encoder whose first output is its input: `x` [1, 24] to `y`, the same, `embedding` [1, 96] and
 * `probabilities` [1, 10].
 */
export const encoder = () => model([
  node('Identity', 'pass', ['x'], 'y'),
  node('MatMul', 'dense', ['x', 'w'], 'd'), node('Tanh', 'tanh', ['d'], 'embedding'),
  node('MatMul', 'head', ['d', 'v'], 'h'), node('Softmax', 'softmax', ['h'], 'probabilities'),
], [tensor('w', float, [24, 96], [raw(matrix(24, 96, 1))]), tensor('v', float, [96, 10], [raw(matrix(96, 10, 7))])], { x: [1, 24], y: [1, 24] }, { embedding: [1, 96], probabilities: [1, 10] });

/** A language model whose logits depend on the last token alone. @param {number} words */
export function languageModel(words) {
  const text = ['batch', 'length'];
  const constants = [tensor('table', float, [words, 32], [raw(matrix(words, 32, 3))]), tensor('w', float, [32, words], [raw(matrix(32, words, 5))])];
  const graph = [
    ...[node('Gather', 'embed', ['table', 'input_ids'], 'e'), node('MatMul', 'head', ['e', 'w'], 'logits')].map((one) => field(1, one)),
    field(2, 'g'), ...constants.map((one) => field(5, one)),
    ...['input_ids', 'attention_mask', 'past_key_values.0.key'].map((name) => field(11, name.startsWith('past') ? port(name, ['batch', 2, 'past', 4]) : port(name, text, int64))),
    field(12, port('logits', [...text, words])),
  ];
  return Buffer.concat([whole(1, 8), field(7, graph), field(8, whole(2, 13))]);
}

/** A language model whose head is its table, and whose positions are another one. @param {number} words */
export function tied(words) {
  const width = 64;
  const constants = [
    tensor('table', float, [words, width], [raw(matrix(words, width, 3))]), tensor('positions', float, [words, width], [raw(matrix(words, width, 9))]),
    tensor('w', float, [width, width], [raw(matrix(width, width, 5))]),
  ];
  const graph = [
    ...[
      node('Gather', 'embed', ['table', 'input_ids'], 'e'), node('Gather', 'place', ['positions', 'input_ids'], 'p'), node('Add', 'sum', ['e', 'p'], 's'),
      node('MatMul', 'layer', ['s', 'w'], 'h'), node('Transpose', 'turn', ['table'], 't'), node('MatMul', 'head', ['h', 't'], 'logits'),
    ].map((one) => field(1, one)),
    field(2, 'g'), ...constants.map((one) => field(5, one)), field(11, port('input_ids', ['batch', 'length'], int64)), field(12, port('logits', ['batch', 'length', words])),
  ];
  return Buffer.concat([whole(1, 8), field(7, graph), field(8, whole(2, 13))]);
}

/**
 * A chain of depthwise convolutions that keep the image size, `x` to `y`, for the kernel bench.
 *
 * @param {{ layers: number, channels: number, size: number, kernel: number, dilation: number }} of
 */
export function depthwise({ layers, channels, size, kernel, dilation }) {
  const ints = (/** @type {string} */ name, /** @type {number[]} */ values) => field(5, [field(1, name), ...values.map((value) => whole(8, value)), whole(20, 7)]);
  const pad = dilation * (kernel >> 1);
  const attributes = [ints('dilations', [dilation, dilation]), ints('pads', [pad, pad, pad, pad]), field(5, [field(1, 'group'), whole(3, channels), whole(20, 2)])];
  // Weights with a variance of one over the fan-in, so values keep their variance.
  const spread = Math.sqrt(12) / kernel;
  const weights = Array.from({ length: layers }, (_, at) => tensor(`w${at}`, float, [channels, 1, kernel, kernel], [
    raw(Array.from({ length: channels * kernel * kernel }, (_, i) => ((((i + 7 * at) * 2654435761) % 1009) / 1008 - 0.5) * spread)),
  ]));
  const value = (/** @type {number} */ at) => (at === 0 ? 'x' : at === layers ? 'y' : `v${at}`);
  const nodes = weights.map((_, at) => node('Conv', `conv${at}`, [value(at), `w${at}`], value(at + 1), attributes));
  return model(nodes, weights, { x: [1, channels, size, size], y: [1, channels, size, size] });
}

/**
 * A long chain with a skip connection around each third node, for large graphs.
 *
 * @param {number} count
 */
export function chain(count) {
  const name = (/** @type {number} */ at) => (at === count - 1 ? 'y' : `v${at}`);
  const nodes = Array.from({ length: count }, (_, at) => (at > 2 && at % 3 === 0
    ? node('Add', `add${at}`, [name(at - 1), name(at - 3)], name(at))
    : node('Relu', `relu${at}`, [at === 0 ? 'x' : name(at - 1)], name(at))));
  return model(nodes, [], { x: [1, 4], y: [1, 4] });
}

/** 60 MB of weights: four dense layers, `x` [1, 2048] to `y` [1, 2048]. */
export function large() {
  const side = 2048;
  const layers = [0, 1, 2, 3];
  const values = new Float32Array(side * side).map((_, i) => (((i * 2654435761) % 1009) / 1009 - 0.5) / 24);
  const weights = layers.map((at) => tensor(`w${at}`, float, [side, side], [field(9, Buffer.from(values.buffer))]));
  const nodes = layers.flatMap((at) => [
    node('MatMul', `dense${at}`, [at === 0 ? 'x' : `r${at - 1}`, `w${at}`], `d${at}`),
    node('Relu', `relu${at}`, [`d${at}`], at === layers.length - 1 ? 'y' : `r${at}`),
  ]);
  return model(nodes, weights, { x: [1, side], y: [1, side] });
}

/**
 * Dense layers of `side`² floats each, `x` to `output`: the weights in the model, or in the file
 * `weights.bin` beside it.
 *
 * @param {{ layers: number, side: number, external?: boolean, output?: string }} of
 * @returns {{ model: Buffer, weights: Buffer }} `weights` is empty where the model has them
 */
export function dense({ layers, side, external = false, output = 'y' }) {
  const size = side * side * 4;
  const entry = (/** @type {string} */ key, /** @type {string} */ value) => field(13, [field(1, key), field(2, value)]);
  /** @type {Buffer[]} */
  const data = [];
  const weights = Array.from({ length: layers }, (_, at) => {
    const values = Buffer.from(new Float32Array(side * side).map((_, i) => ((((i + 31 * at) * 2654435761) % 1009) / 1009 - 0.5) / Math.sqrt(side)).buffer);
    if (external) data.push(values);
    const place = [entry('location', 'weights.bin'), entry('offset', String(at * size)), entry('length', String(size)), whole(14, 1)];
    return tensor(`w${at}`, float, [side, side], external ? place : [field(9, values)]);
  });
  const nodes = weights.map((_, at) => node('MatMul', `dense${at}`, [at === 0 ? 'x' : `d${at - 1}`, `w${at}`], at === layers - 1 ? output : `d${at}`));
  return { model: model(nodes, weights, { x: [1, side], y: [1, side], output }), weights: Buffer.concat(data) };
}

/** The convolution for images of any size. */
export const anySize = () => convolution({ x: [1, 3, 'height', 'width'], y: [1, 2, 'height', 'width'] });

/**
 * A model like YOLO for any height and width. `images` is halved five times; the result is enlarged
 * and concatenated with the value before the last halving. So sides must be multiples of 32.
 *
 * @param {Record<string, string>} [metadata] as its exporter leaves them
 */
export function detector(metadata = {}) {
  const ints = (/** @type {string} */ name, /** @type {number[]} */ values) => field(5, [field(1, name), ...values.map((value) => whole(8, value)), whole(20, 7)]);
  const text = (/** @type {string} */ name, /** @type {string} */ value) => field(5, [field(1, name), field(4, value), whole(20, 3)]);
  const channels = 4;
  const spread = (/** @type {number} */ count, /** @type {number} */ seed) => raw(Array.from({ length: count }, (_, i) => (((i * 7 + seed) * 2654435761) % 1009) / 1009 - 0.5));
  const weights = [3, channels, channels, channels, channels].map((from, at) => tensor(`w${at}`, float, [channels, from, 3, 3], [spread(channels * from * 9, at)]));
  const halved = (/** @type {number} */ at) => (at < 0 ? 'images' : `r${at}`);
  const nodes = weights.flatMap((_, at) => [
    node('Conv', `conv${at}`, [halved(at - 1), `w${at}`], `c${at}`, [ints('strides', [2, 2]), ints('pads', [1, 1, 1, 1])]),
    node('Relu', `relu${at}`, [`c${at}`], halved(at)),
  ]);
  const graph = [
    ...nodes,
    node('Resize', 'enlarge', ['r4', '', 'twice'], 'large', [text('mode', 'nearest'), text('coordinate_transformation_mode', 'asymmetric'), text('nearest_mode', 'floor')]),
    node('Concat', 'join', ['large', 'r3'], 'joined', [field(5, [field(1, 'axis'), whole(3, 1), whole(20, 2)])]),
    node('Conv', 'head', ['joined', 'wh'], 'boxes'),
    node('Reshape', 'flat', ['boxes', 'cells'], 'output0'),
  ];
  const cells = Buffer.from(new BigInt64Array([1n, 6n, -1n]).buffer);
  const constants = [
    ...weights, tensor('wh', float, [6, 2 * channels, 1, 1], [spread(12 * channels, 5)]),
    tensor('twice', float, [4], [raw([1, 1, 2, 2])]), tensor('cells', 7, [3], [field(9, cells)]),
  ];
  const parts = [
    ...graph.map((one) => field(1, one)), field(2, 'g'), ...constants.map((one) => field(5, one)),
    field(11, port('images', [1, 3, 'height', 'width'])), field(12, port('output0', [1, 6, 'anchors'])),
  ];
  const told = Object.entries(metadata).map(([key, value]) => field(14, [field(1, key), field(2, value)]));
  return Buffer.concat([whole(1, 8), field(7, parts), field(8, whole(2, 13)), ...told]);
}

/**
 * A classifier of four levels of the first channel, which it expects as 0 to 255: `x` [1, 3, 8, 8] to
 * `y` [1, 4].
 */
export function levels() {
  const centers = [32, 96, 160, 224];
  // The nearest center has the largest 2cx - c².
  const weights = [...centers.map((center) => 2 * center), ...new Array(8).fill(0)].map((value) => value / 1000);
  return model([
    node('GlobalAveragePool', 'pool', ['x'], 'p'), node('Flatten', 'flat', ['p'], 'f'),
    node('MatMul', 'dense', ['f', 'w'], 'd'), node('Add', 'shift', ['d', 'b'], 'y'),
  ], [tensor('w', float, [3, 4], [raw(weights)]), tensor('b', float, [4], [raw(centers.map((center) => -center * center / 1000))])], { x: [1, 3, 8, 8], y: [1, 4] });
}

/**
 * A detector with boxes and logits apart, as DETR has them: `images` [1, 3, 64, 64] to four boxes, of
 * which a cat and a dog are no ground. They move a little with the colours.
 */
export function boxesAndLogits() {
  const boxes = [0.3, 0.3, 0.3, 0.4, 0.7, 0.6, 0.2, 0.5, 0.5, 0.5, 0.1, 0.1, 0.2, 0.8, 0.1, 0.1];
  const logits = [4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 4];
  const head = (/** @type {string} */ name, /** @type {number[]} */ values, /** @type {number} */ width) => ({
    nodes: [node('MatMul', `${name}_dense`, ['f', `${name}_w`], `${name}_d`), node('Add', `${name}_add`, [`${name}_d`, `${name}_b`], `${name}_a`), node('Reshape', `${name}_rows`, [`${name}_a`, `${name}_shape`], name)],
    constants: [tensor(`${name}_w`, float, [3, values.length], [raw(matrix(3, values.length, width).map((value) => value / 20))]), tensor(`${name}_b`, float, [values.length], [raw(values)]),
      tensor(`${name}_shape`, int64, [3], [field(9, Buffer.from(new BigInt64Array([1n, 4n, BigInt(width)]).buffer))])],
  });
  const heads = [head('pred_boxes', boxes, 4), head('logits', logits, 3)];
  const nodes = [node('GlobalAveragePool', 'pool', ['images'], 'p'), node('Flatten', 'flat', ['p'], 'f'), ...heads.flatMap((one) => one.nodes)];
  const graph = [
    ...nodes.map((one) => field(1, one)), field(2, 'g'), ...heads.flatMap((one) => one.constants).map((one) => field(5, one)),
    field(11, port('images', [1, 3, 64, 64])), field(12, port('pred_boxes', [1, 4, 4])), field(12, port('logits', [1, 4, 3])),
  ];
  return Buffer.concat([whole(1, 8), field(7, graph), field(8, whole(2, 13)), field(14, [field(1, 'names'), field(2, "{0: 'cat', 1: 'dog'}")])]);
}

/** An encoder of texts: the mean of the vectors of the tokens. @param {number} words */
export function textEncoder(words) {
  const text = ['batch', 'length'];
  const constants = [tensor('table', float, [words, 32], [raw(matrix(words, 32, 3))]), tensor('w', float, [32, 32], [raw(matrix(32, 32, 5))])];
  const mean = [field(5, [field(1, 'axes'), whole(8, 1), whole(20, 7)]), field(5, [field(1, 'keepdims'), whole(3, 0), whole(20, 2)])];
  const graph = [
    ...[node('Gather', 'embed', ['table', 'input_ids'], 'e'), node('MatMul', 'dense', ['e', 'w'], 'd'), node('ReduceMean', 'mean', ['d'], 'sentence_embedding', mean)].map((one) => field(1, one)),
    field(2, 'g'), ...constants.map((one) => field(5, one)),
    ...['input_ids', 'attention_mask'].map((name) => field(11, port(name, text, int64))), field(12, port('sentence_embedding', ['batch', 32])),
  ];
  return Buffer.concat([whole(1, 8), field(7, graph), field(8, whole(2, 13))]);
}

/** A convolution over a waveform: `x` [1, 1, 16384] to `y` [1, 4, 2047]. */
export const sound = () => model(
  [node('Conv', 'conv', ['x', 'w'], 'c', [field(5, [field(1, 'strides'), whole(8, 8), whole(20, 7)])]), node('Relu', 'relu', ['c'], 'y')],
  [tensor('w', float, [4, 1, 16], [raw(matrix(4, 16, 9))])], { x: [1, 1, 16384], y: [1, 4, 2047] });

/**
 * Branches of unequal size that a logarithm makes equal, as in a spectrum: `x` [1, 3, 16, 16] to `y`
 * [1, 8, 16, 16]. What is wrong in a small branch is small before the logarithm, and large behind it.
 */
export function branches() {
  const sizes = [1, 0.3, 0.1, 0.03];
  const weights = sizes.map((size, at) => tensor(`w${at}`, float, [2, 3, 3, 3], [raw(matrix(6, 9, at).map((value) => value * size))]));
  const nodes = sizes.flatMap((_, at) => [node('Conv', `conv${at}`, ['x', `w${at}`], `c${at}`, pads), node('Relu', `relu${at}`, [`c${at}`], `r${at}`)]);
  const join = [field(5, [field(1, 'axis'), whole(3, 1), whole(20, 2)])];
  return model([...nodes, node('Concat', 'join', sizes.map((_, at) => `r${at}`), 'j', join), node('Add', 'floor', ['j', 'small'], 'f'), node('Log', 'log', ['f'], 'y')],
    [...weights, tensor('small', float, [], [raw([0.02])])], { x: [1, 3, 16, 16], y: [1, 8, 16, 16] });
}

/** A WAV file of 16 bits. @param {number} rate @param {number} count @returns {Buffer} */
export function wav(rate, count) {
  const values = Int16Array.from({ length: count }, (_, at) => 20_000 * Math.sin((at * 2 * Math.PI * 440) / rate));
  const header = Buffer.alloc(44);
  header.write('RIFF');
  header.writeUInt32LE(36 + 2 * count, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(2 * rate, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(2 * count, 40);
  return Buffer.concat([header, Buffer.from(values.buffer)]);
}

/** Coloured noise, by place and channel. @param {number} x @param {number} y @param {number} channel */
const noise = (x, y, channel) => ((3 * x + channel) * 5 + y * 3 + (((3 * x + channel) * y) % 7) * 20) % 256;

/** A PNG, with coloured noise by default. @param {number} width @param {number} height @param {(x: number, y: number, channel: number) => number} pixel @returns {Buffer} */
export function png(width, height, pixel = noise) {
  const chunk = (/** @type {string} */ kind, /** @type {Buffer} */ content) => {
    const body = Buffer.concat([Buffer.from(kind), content]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(content.length);
    ends.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8);
  const lines = Array.from({ length: height }, (_, y) => Buffer.from([0, ...Array.from({ length: 3 * width }, (_, at) => pixel(Math.floor(at / 3), y, at % 3))]));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', header), chunk('IDAT', deflateSync(Buffer.concat(lines))), chunk('IEND', Buffer.alloc(0))]);
}

/** A model with an unknown operator. */
export const unknownOperator = () => model([convolve('x'), node('Frobnicate', 'frob', ['c'], 'y')], [weight], small);

/** A model as quantized by another tool. */
export function alreadyQuantized() {
  const nodes = [
    node('QuantizeLinear', 'q', ['x', 'scale', 'zero'], 'i'),
    node('DequantizeLinear', 'd', ['i', 'scale', 'zero'], 'f'),
    convolve('f'), node('Relu', 'relu', ['c'], 'y'),
  ];
  const constants = [weight, tensor('scale', float, [], [raw([0.5])]), tensor('zero', uint8, [], [field(9, Buffer.from([3]))])];
  return model(nodes, constants, small);
}

/** y = x + w, with w of four floats in an external file. @param {string} location */
export function withExternalData(location) {
  const entry = (/** @type {string} */ key, /** @type {string} */ value) => field(13, [field(1, key), field(2, value)]);
  const elsewhere = tensor('w', float, [4], [entry('location', location), entry('offset', '0'), entry('length', '16'), whole(14, 1)]);
  return model([node('Add', 'sum', ['x', 'w'], 'y')], [elsewhere], { x: [4], y: [4] });
}

/** A `.npy` file. @param {Float32Array | Float64Array | BigInt64Array} values @param {number[]} shape @returns {Buffer} */
export function npy(values, shape) {
  const type = values instanceof Float32Array ? '<f4' : values instanceof Float64Array ? '<f8' : '<i8';
  const text = `{'descr': '${type}', 'fortran_order': False, 'shape': (${shape.join(', ')},), }\n`;
  const length = Buffer.alloc(2);
  length.writeUInt16LE(text.length);
  return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), length, Buffer.from(text), Buffer.from(values.buffer)]);
}
