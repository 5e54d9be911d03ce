// @ts-check
/** The figures of one sample, by the type of its answer. */

import { isSound } from '../../files.js';
import { model, samples } from '../../state/page.js';
import { boxes } from './boxes.js';
import { classes, numbers, rowOf, vectors } from './lists.js';
import { masks, pictures } from './masks.js';
import { filesOf } from './picture.js';
import { recordingOf, sounds } from './sounds.js';

/** @import { Answer, SampleAnswer } from '../../types.js' */

/** @type {Record<string, import('./words.js').Part<any>>} */
const parts = { boxes, classes, mask: masks, numbers, picture: pictures, sound: sounds, vector: vectors };

/** The names of classes: the person's, the model's, or their numbers. @param {Answer} answer @returns {(number: number) => string} */
export function namingFor(answer) {
  const kind = answer.type === 'classes' ? answer.of : 'class';
  const stated = new Map(model.peek()?.card.classNames);
  return (number) => samples.peek().names.get(String(number)) ?? stated.get(number) ?? `${kind} ${number}`;
}

/** @param {SampleAnswer} shown @param {SampleAnswer[]} all @returns {Promise<Node[]>} */
export async function figuresOf({ sample, answer }, all) {
  const heard = answer.type !== 'sound' && filesOf(sample).some(isSound) ? await recordingOf(sample) : [];
  const row = answer.row ? [await rowOf(sample, answer.row)] : [];
  return [...heard, ...await parts[answer.type]({ sample, answer, all, naming: namingFor(answer) }), ...row];
}
