// @ts-check
/**
 * Answers of both models for a sample, in a form that a page can show: classes, boxes, masks,
 * vectors, sound, pictures or numbers. The kinds of the outputs are the engine's. Pure.
 */

import { compareBoxes } from './boxes.js';
import { compareClasses } from './classes.js';
import { compareMasks, maskForm } from './masks.js';
import { cosine, pooled } from './vectors.js';

/** @import { Answer, Elements, ModelTask, NumbersAnswer, OutputPair, RawAnswers } from '../types.js' */

/** Numbers of an output, and of a row of a table, that are kept. */
const [few, columns] = [8, 200];
/** Fewest and most values of a sound. */
const [least, most] = [1000, 1 << 21];
/** Difference from which numbers count as different: 20 dB, as the verdict requires. */
const near = 0.1;

const imageTasks = new Set(['segmenter', 'image-to-image', 'other']);

/**
 * @param {RawAnswers} raw
 * @param {ModelTask} task
 * @returns {Answer}
 */
export function answerOf(raw, task) {
  const unclear = raw.boxes ? 'Its boxes do not lie in the picture, so this kind of head is not understood.' : '';
  const found = boxesIn(raw) ?? masksIn(raw, task) ?? classesIn(raw) ?? vectorIn(raw) ?? soundIn(raw, task);
  return { ...(found ?? { ...numbersIn(raw), why: unclear }), ...(task === 'table' && { row: rowOf(raw) }) };
}

/** Floats of an array that may hold integers of 64 bits. @param {Elements} data */
const floats = (data) => (data instanceof Float32Array ? data : Float32Array.from(/** @type {Iterable<number | bigint>} */ (data), Number));

/** The shape of the input that takes pictures. @param {RawAnswers} raw */
function frameOf({ inputs }) {
  const shape = inputs.find((input) => input.shape.length === 4)?.shape ?? inputs.find((input) => input.shape.length === 3)?.shape;
  if (!shape) return null;
  const [a, b, c] = shape.slice(-3);
  const lastAxis = c <= 4 && a > 4;
  return lastAxis ? { height: a, width: b, lastAxis } : { height: b, width: c, lastAxis };
}

/** @param {RawAnswers} raw @returns {Answer | null} */
function boxesIn(raw) {
  const frame = frameOf(raw);
  if (!raw.boxes || !frame) return null;
  // TensorFlow's detectors name their output so, and give the vertical coordinate first.
  const rowsFirst = raw.outputs.some(({ kind, float }) => kind === 'boxes' && /detection_boxes|yxyx/i.test(float.name));
  const planes = raw.outputs.find(({ float }) => float.name === raw.prototypes);
  // Prototypes that are too large to be handed over leave rows that can't be told apart.
  if (raw.prototypes && !planes) return null;
  const found = compareBoxes(raw.boxes[0], raw.boxes[1], { ...frame, rowsFirst }, planes ? [planes.float, planes.quantized] : []);
  return found && { type: 'boxes', height: frame.height, width: frame.width, ...found };
}

/** @param {RawAnswers} raw @param {ModelTask} task @returns {Answer | null} */
function masksIn(raw, task) {
  const frame = frameOf(raw);
  if (!frame || !imageTasks.has(task)) return null;
  for (const { kind, float, quantized } of raw.outputs) {
    const form = maskForm(float.shape, frame.lastAxis);
    const judged = kind === 'values' || (kind === 'integers' && task === 'segmenter');
    if (!form || !judged || quantized.data.length !== float.data.length) continue;
    const picture = form.classes === 3 && task !== 'segmenter';
    if (picture) return pictureIn({ kind, float, quantized }, form);
    if (task === 'other' && form.classes !== 1) continue;
    return { type: 'mask', frame, ...compareMasks(float, quantized, form) };
  }
  return null;
}

/** @param {OutputPair} pair @param {import('./masks.js').Form} form @returns {Answer} */
function pictureIn({ float, quantized }, { height, width, pixel, plane }) {
  const [a, b] = [floats(float.data), floats(quantized.data)];
  const apart = distance(a, b);
  return { type: 'picture', height, width, pixel, plane, float: a, quantized: b, apart, differs: apart > near };
}

/** @param {RawAnswers} raw @returns {Answer | null} */
function classesIn({ outputs }) {
  const found = outputs.find(({ kind }) => kind === 'classes') ?? outputs.find(({ kind }) => kind === 'tokens');
  if (!found) return null;
  const [a, b] = [floats(found.float.data), floats(found.quantized.data)];
  if (found.kind === 'classes') return { type: 'classes', of: 'class', ...compareClasses(a, b) };
  // Of a language model: the token after the text.
  const width = found.float.shape.at(-1) ?? a.length;
  return { type: 'classes', of: 'token', ...compareClasses(a.subarray(a.length - width), b.subarray(b.length - width)) };
}

/** @param {RawAnswers} raw @returns {Answer | null} */
function vectorIn({ outputs, inputs }) {
  const all = outputs.filter(({ kind }) => kind === 'embedding');
  // A pooled vector says more than those of the tokens.
  const found = all.find(({ float }) => float.shape.length === 2) ?? all[0];
  if (!found) return null;
  const mask = inputs.find(({ name }) => /attention_mask/.test(name))?.data;
  const [a, b] = [found.float, found.quantized].map(({ data, shape }) => pooled(floats(data), shape, mask));
  // The neighbours tell whether the answers differ; one sample alone has none.
  return { type: 'vector', float: a, quantized: b, apart: 1 - cosine(a, b), differs: false };
}

/** @param {RawAnswers} raw @param {ModelTask} task @returns {Answer | null} */
function soundIn({ outputs }, task) {
  if (task !== 'audio' && task !== 'speech') return null;
  const isSound = (/** @type {OutputPair} */ { kind, float: { shape } }) => kind === 'values' && (shape.at(-1) ?? 0) >= least && shape.slice(0, -1).every((size) => size === 1);
  const found = outputs.find(isSound);
  if (!found) return null;
  const [a, b] = [floats(found.float.data), floats(found.quantized.data)];
  const apart = distance(a, b);
  return { type: 'sound', float: a.slice(0, most), quantized: b.slice(0, most), apart, differs: apart > near };
}

/** @param {RawAnswers} raw @returns {NumbersAnswer} */
function numbersIn({ outputs }) {
  const listed = outputs.map(({ float, quantized, kind }) => {
    const [a, b] = [floats(float.data), floats(quantized.data)];
    const judged = kind !== 'integers' && kind !== 'passed';
    return { name: float.name, shape: float.shape, apart: judged ? distance(a, b) : 0, float: [...a.subarray(0, few)], quantized: [...b.subarray(0, few)], steps: kind === 'steps' ? steps(a, b, float.shape.at(-1) ?? 1) : null };
  });
  const apart = Math.max(0, ...listed.map((one) => one.apart));
  const differs = listed.some((one) => (one.steps ? one.steps.same < one.steps.of : one.apart > near));
  return { type: 'numbers', outputs: listed, apart, differs, why: '' };
}

/** Steps with the same best class. @param {Float32Array} a @param {Float32Array} b @param {number} width */
function steps(a, b, width) {
  const best = (/** @type {Float32Array} */ row) => row.indexOf(row.reduce((most, value) => Math.max(most, value), -Infinity));
  let [same, of] = [0, 0];
  for (let from = 0; from + width <= Math.min(a.length, b.length); from += width) {
    of += 1;
    same += Number(best(a.subarray(from, from + width)) === best(b.subarray(from, from + width)));
  }
  return { same, of };
}

/**
 * The length of the difference, as a share of the length of the float values.
 *
 * @param {Float32Array} a
 * @param {Float32Array} b
 */
function distance(a, b) {
  let [apart, length] = [0, 0];
  for (let at = 0; at < a.length; at += 1) {
    apart += (a[at] - b[at]) ** 2;
    length += a[at] ** 2;
  }
  if (apart === 0) return 0;
  return length > 0 ? Math.sqrt(apart / length) : 1;
}

/** The values of a row, one input after the other. @param {RawAnswers} raw */
const rowOf = ({ inputs }) => inputs.flatMap(({ data }) => [...floats(data).subarray(0, columns)]).slice(0, columns);
