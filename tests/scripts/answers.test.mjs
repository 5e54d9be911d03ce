// What both models answer, from their outputs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerOf } from '../../www/answers/answer.js';
import { compareBoxes } from '../../www/answers/boxes.js';
import { compareClasses } from '../../www/answers/classes.js';
import { neighbours, pooled } from '../../www/answers/vectors.js';
import { placement } from '../../www/features/predictions/placement.js';
import { countOf, difference, textOf, worstFirst } from '../../www/features/predictions/words.js';

/** @import { ModelTask, OutputKind, OutputPair, RawAnswers } from '../../www/types.js' */

/** @param {string} name @param {number[]} shape @param {number[]} values */
const tensor = (name, shape, values) => ({ name, element: 'float32', shape, data: Float32Array.from(values) });
/** @param {OutputKind} kind @param {number[]} shape @param {number[]} float @param {number[]} quantized @returns {OutputPair} */
const pair = (kind, shape, float, quantized) => ({ kind, float: tensor('y', shape, float), quantized: tensor('y', shape, quantized) });
/** @param {ModelTask} task @param {OutputPair[]} outputs @param {RawAnswers['boxes']} [boxes] @param {number[]} [input] */
const answer = (task, outputs, boxes = null, input = [1, 3, 8, 8]) => answerOf({ inputs: [tensor('x', input, new Array(input.reduce((a, b) => a * b)).fill(1))], outputs, boxes, prototypes: null }, task);
const naming = (/** @type {number} */ number) => `class ${number}`;

test('logits become probabilities, and probabilities stay', () => {
  const logits = compareClasses([0, Math.log(3), -50], [Math.log(3), 0, -50]);
  assert.deepEqual(logits.float.map(({ number }) => number), [1, 0, 2]);
  assert.ok(Math.abs((logits.float[0]?.share ?? 0) - 0.75) < 1e-9);
  assert.equal(logits.differs, true);
  const shares = compareClasses([0.5, 0.3, 0.2], [0.5, 0.25, 0.25]);
  assert.deepEqual(shares.quantized, [{ number: 0, share: 0.5 }, { number: 1, share: 0.25 }, { number: 2, share: 0.25 }]);
  assert.equal(shares.differs, false);
});

test('of overlapping boxes the best stays, and boxes of both models are paired', () => {
  const float = [0, 0, 40, 40, 0.9, 1, 2, 2, 41, 41, 0.6, 1, 50, 50, 90, 90, 0.8, 2];
  const quantized = [1, 1, 40, 40, 0.7, 1, 50, 50, 90, 90, 0.8, 3];
  const found = compareBoxes(float, quantized, { height: 100, width: 200, rowsFirst: false });
  assert.deepEqual(found?.float.map(({ number, paired }) => [number, paired]), [[1, true], [2, false]]);
  assert.deepEqual(found?.quantized.map(({ number, paired }) => [number, paired]), [[3, false], [1, true]]);
  assert.equal(found?.float[0]?.right, 0.2);
  assert.equal(found?.differs, true);
});

test('normalized boxes and vertical coordinates first are told apart, and boxes outside are not understood', () => {
  const [box] = compareBoxes([0.1, 0.2, 0.5, 0.6, 0.9, 1], [], { height: 100, width: 100, rowsFirst: true })?.float ?? [];
  assert.deepEqual([box?.left, box?.top, box?.right, box?.bottom].map((side) => side?.toFixed(1)), ['0.2', '0.1', '0.6', '0.5']);
  assert.equal(compareBoxes([5000, 5000, 6000, 6000, 0.9, 1], [], { height: 100, width: 100, rowsFirst: false }), null);
  const shown = answer('detector', [pair('boxes', [1, 1, 4], [1, 2, 3, 4], [1, 2, 3, 4])], [Float32Array.of(5000, 5000, 6000, 6000, 0.9, 1), new Float32Array()]);
  assert.match(shown.type === 'numbers' ? shown.why : '', /not understood/);
});

test('a box has the pixels where its prototypes add up to more than nothing', () => {
  // Two planes of 4 x 4: the left half, and the upper half.
  const half = (/** @type {(at: number) => boolean} */ inside) => Array.from({ length: 16 }, (_, at) => (inside(at) ? 1 : -1));
  const planes = pair('values', [1, 2, 4, 4], [...half((at) => at % 4 < 2), ...half((at) => at < 8)], [...half((at) => at % 4 < 2), ...half((at) => at >= 8)]);
  const box = [0, 0, 80, 80, 0.9, 1, 0, 1]; // only the second plane
  const raw = { inputs: [tensor('x', [1, 3, 80, 80], new Array(19200).fill(0))], outputs: [pair('boxes', [1, 7, 64], [0], [0]), { ...planes, float: { ...planes.float, name: 'planes' } }], prototypes: 'planes' };
  const same = answerOf({ ...raw, boxes: [Float32Array.from(box), Float32Array.from(box)] }, 'detector');
  assert.ok(same.type === 'boxes');
  const { mask } = same.float[0] ?? {};
  assert.deepEqual([mask?.columns, mask?.rows, [...(mask?.pixels ?? [])].join('')], [4, 4, '1111111100000000']);
  assert.equal([...(same.quantized[0]?.mask?.pixels ?? [])].join(''), '0000000011111111');
  // The boxes are the same, and their things are not.
  assert.deepEqual([same.differs, same.float[0]?.paired], [true, false]);
  // A box of the left quarter holds a part of the mask, in the places of the planes.
  const part = compareBoxes([0, 0, 20, 80, 0.9, 1, 1, 0], [], { height: 80, width: 80, rowsFirst: false }, [raw.outputs[1]?.float ?? tensor('', [], [])]);
  assert.deepEqual([part?.float[0]?.mask?.columns, part?.float[0]?.mask?.pixels.every((pixel) => pixel === 1)], [1, true]);
});

test('a mask is the best class of each pixel, in both orders of axes', () => {
  const [height, width] = [4, 5];
  const first = Array.from({ length: 40 }, (_, at) => (at < 20 ? 1 : at % 5)); // class 1 where its value is above 1
  const second = first.map((value, at) => (at === 24 ? 0 : value));
  const planes = answer('segmenter', [pair('values', [1, 2, height, width], first, second)]);
  assert.equal(planes.type === 'mask' && planes.agreement, 0.95);
  assert.match(difference(planes, naming), /^95\.0 % of the pixels have the same class\. Class [01] covers/);
  const last = first.map((_, at) => first[(at % 2) * 20 + Math.floor(at / 2)] ?? 0);
  const pixels = answer('segmenter', [pair('values', [1, height, width, 2], last, last)], null, [1, 8, 8, 3]);
  assert.deepEqual(pixels.type === 'mask' && [...pixels.float], planes.type === 'mask' && [...planes.float]);
  const one = answer('segmenter', [pair('values', [1, 1, 4, 5], new Array(20).fill(0.7), new Array(20).fill(0.3))]);
  assert.equal(one.type === 'mask' && one.binary && one.agreement, 0);
});

test('neighbours are ranked by cosine, with their place in the other model', () => {
  const [float, quantized] = [[[1, 0], [1, 0.1], [0, 1]], [[1, 0], [0, 1], [1, 0.1]]].map((all) => all.map((one) => Float32Array.from(one)));
  const found = neighbours(float ?? [], quantized ?? [], 0);
  assert.deepEqual([found.float[0]?.sample, found.float[0]?.before, found.differs], [1, 1, true]);
  assert.deepEqual([...pooled([1, 2, 3, 4, 50, 60], [1, 3, 2], [1, 1, 0])], [2, 3]);
  assert.equal(textOf(['[CLS]', 'play', '##ing', 'outside', '.', '[SEP]']), 'playing outside.');
  assert.equal(textOf(['▁play', 'ing', '▁outside']), 'playing outside');
});

test('rows of tables keep their values, and other outputs are numbers', () => {
  const row = answer('table', [pair('values', [1, 1], [2], [3])], null, [1, 4]);
  assert.deepEqual([row.row, row.type, row.differs, row.apart], [[1, 1, 1, 1], 'numbers', true, 0.5]);
  const read = answer('other', [pair('steps', [1, 2, 2], [1, 2, 4, 3], [1, 2, 3, 4])], null, [1, 4]);
  assert.match(difference(read, naming), /1 of 2 steps have the same class/);
  const heard = answer('audio', [pair('values', [1, 2000], new Array(2000).fill(1), new Array(2000).fill(1))], null, [1, 2000]);
  assert.deepEqual([heard.type, heard.differs], ['sound', false]);
});

test('the answers that differ come first, and their number is told', () => {
  const all = [[0.5, 0.1], [0.1, 0.5], [0.2, 0.9]].map((quantized, at) => ({ sample: String(at), answer: answer('classifier', [pair('classes', [1, 2], [0.6, 0.4], quantized)]) }));
  assert.deepEqual(worstFirst(all).map(({ sample }) => sample), ['2', '1', '0']);
  assert.equal(countOf(all), '2 of 3 answers differ.');
  assert.match(difference(all[1]?.answer ?? /** @type {any} */ (null), naming), /^Float says class 0 \(60\.0 %\), quantized class 1 \(50\.0 %\)\.$/);
});

test('the part of a picture that the model sees follows from the preprocessing', () => {
  const [picture, input] = [{ height: 100, width: 200 }, { height: 70, width: 70 }];
  assert.deepEqual(placement(picture, input, { resize: 'letterbox' }), { source: { x: 0, y: 0, width: 200, height: 100 }, target: { x: 0, y: 0.25, width: 1, height: 0.5 } });
  assert.deepEqual(placement(picture, input, { resize: 'shorter' }).source, { x: 56.25, y: 6.25, width: 87.5, height: 87.5 });
  assert.deepEqual(placement(picture, input, { resize: 'exact' }).source, { x: 0, y: 0, width: 200, height: 100 });
});
