// @ts-check
/** The difference of two answers in words, and the order of the answers. Pure. */

import { percent, plural, real } from '../../library/format.js';

/** @import { Answer, BoxesAnswer, ClassesAnswer, MaskAnswer, SampleAnswer } from '../../types.js' */

/** @typedef {(number: number) => string} Naming the name of a class */

/**
 * A part of the predictions: it gets an answer and gives figures, one for each model or more.
 *
 * @template A
 * @typedef {(shown: { sample: string, answer: A, all: SampleAnswer[], naming: Naming }) => Promise<Node[]> | Node[]} Part
 */

/**
 * The answers that differ first, each part with the farthest first.
 *
 * @param {SampleAnswer[]} answers
 */
export const worstFirst = (answers) => [...answers].sort((a, b) => Number(b.answer.differs) - Number(a.answer.differs) || b.answer.apart - a.answer.apart);

/** The number of answers that differ, as a sentence. @param {SampleAnswer[]} answers */
export function countOf(answers) {
  const differing = answers.filter(({ answer }) => answer.differs).length;
  if (differing === 0) return answers.length === 1 ? 'Both models give the same answer.' : `All ${answers.length} answers are the same.`;
  return answers.length === 1 ? 'The answers differ.' : `${differing} of ${answers.length} answers differ.`;
}

/** The meaning of “differ” for each kind of answer. @type {Record<Answer['type'], string>} */
export const meaning = {
  classes: 'Answers differ if the most likely class is another one.',
  boxes: 'Answers differ if one model has a box that the other has not: of another class, or overlapping by less than half. Boxes have a score of 0.25 or more.',
  mask: 'Answers differ if fewer than 95 % of the pixels have the same class.',
  vector: 'Answers differ if another sample is the nearest.',
  sound: 'Answers differ if the difference is more than 10 % of the float sound.',
  picture: 'Answers differ if the difference is more than 10 % of the float values.',
  numbers: 'Answers differ if the difference is more than 10 % of the float values, or if a step has another class.',
};

/**
 * @param {Answer} answer
 * @param {Naming} naming
 * @returns {string}
 */
export function difference(answer, naming) {
  switch (answer.type) {
    case 'classes': return classes(answer, naming);
    case 'boxes': return boxes(answer, naming);
    case 'mask': return masks(answer, naming);
    case 'vector': return `The cosine of both vectors is ${(1 - answer.apart).toFixed(4)}.`;
    case 'numbers': return numbers(answer);
    default: return apart(answer.apart);
  }
}

/** @param {number} share */
const apart = (share) => (share === 0 ? 'Both are equal.' : `The difference is ${percent(share)} of the float values.`);

/** @param {ClassesAnswer} answer @param {Naming} naming */
function classes({ float: [first], quantized: [second], shares }, naming) {
  if (!first || !second) return 'There are no classes.';
  const [a, b] = [first, second].map(({ share }) => scored(share, shares));
  if (first.number !== second.number) return `Float says ${naming(first.number)} (${a}), quantized ${naming(second.number)} (${b}).`;
  return `Both say ${naming(first.number)}: ${a} in float, ${b} quantized.`;
}

/** A probability, or a plain score. @param {number} score @param {boolean} shares */
export const scored = (score, shares) => (shares ? percent(score) : real(score));

/** @param {BoxesAnswer} answer @param {Naming} naming */
function boxes({ float, quantized }, naming) {
  if (float.length + quantized.length === 0) return 'Neither model finds anything.';
  const both = float.filter(({ paired }) => paired).length;
  const only = (/** @type {typeof float} */ all) => all.filter(({ paired }) => !paired).map(({ number, score }) => `${naming(number)} ${percent(score)}`).join(', ');
  const [lost, added] = [only(float), only(quantized)];
  return [`${plural(both, 'box is', 'boxes are')} found by both.`, lost && `Only float: ${lost}.`, added && `Only quantized: ${added}.`].filter(Boolean).join(' ');
}

/** @param {MaskAnswer} answer @param {Naming} naming */
function masks({ agreement, shares, binary }, naming) {
  const [farthest] = [...shares].sort((a, b) => Math.abs(b.float - b.quantized) - Math.abs(a.float - a.quantized));
  const moved = farthest && farthest.float !== farthest.quantized
    ? ` ${binary ? 'The object' : capital(naming(farthest.number))} covers ${percent(shareOf(farthest, shares, binary).float)} in float, ${percent(shareOf(farthest, shares, binary).quantized)} quantized.` : '';
  return `${percent(agreement)} of the pixels have the same class.${moved}`;
}

/** Of a mask with one class, the object. @param {MaskAnswer['shares'][number]} one @param {MaskAnswer['shares']} all @param {boolean} binary */
const shareOf = (one, all, binary) => (binary ? all.find(({ number }) => number === 1) ?? { number: 1, float: 0, quantized: 0 } : one);

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @param {import('../../types.js').NumbersAnswer} answer */
function numbers({ outputs, apart: most }) {
  const told = outputs.flatMap(({ name, steps }) => (steps ? [`${name}: ${steps.same} of ${steps.of} steps have the same class.`] : []));
  return told.length > 0 ? told.join(' ') : most === 0 ? 'Both are equal.' : `The difference is at most ${real(most * 100)} % of the float values of an output.`;
}

/** Joins the tokens of a vocabulary. @param {string[]} tokens */
export function textOf(tokens) {
  const words = tokens.filter((token) => !/^(\[[A-Z]+\]|<\/?s>|<\|?[a-z_]+\|?>)$/.test(token));
  const joined = words.map((token) => (token.startsWith('##') ? token.slice(2) : /^[Ġ▁]/.test(token) ? ` ${token.slice(1)}` : words.some((other) => /^[Ġ▁]/.test(other)) ? token : ` ${token}`)).join('');
  return joined.replace(/ ([.,!?;:’'])/g, '$1').trim();
}
