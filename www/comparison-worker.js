// @ts-check
/** Comparisons in the worker: both models run on each sample, and what they answer is kept. */

import { answerOf } from './answers/answer.js';
import { loaded, memory, samplesOf, session, stopped } from './loaded-engine.js';

/** @import { SampleAnswer } from './types.js' */
/** @import { Answer, Arguments } from './calls.js' */
/** @import { Report } from './loaded-engine.js' */

/** Number of samples whose answers are kept. Masks take 100 kB each. */
const most = 200;

/**
 * @param {Arguments<'compare'>} args
 * @param {Report} report
 * @param {() => Promise<boolean>} enough
 * @returns {Promise<Answer<'compare'>>}
 */
export async function compare({ key, quantized, files, samples, labels, split, layers, answers }, report, enough) {
  const open = session(key);
  const all = samplesOf(files);
  loaded().resetControl();
  const stage = layers ? 'Comparing layers' : 'Comparing outputs';
  report({ stage, done: 0, of: all.length, unit: 'samples', memory: memory() });
  await open.beginComparison(quantized, split, layers);
  /** @type {SampleAnswer[]} */
  const kept = [];
  for (const [index, { name, files: parts }] of all.entries()) {
    if (await enough()) throw stopped();
    const raw = await open.compareSample(name, parts, samples, labels[name], answers && index < most);
    if (raw) kept.push({ sample: name, answer: answerOf(raw, open.card().task.task) });
    report({ stage, done: index + 1, of: all.length, unit: 'samples', memory: memory() });
  }
  return { ...open.finishComparison(), answers: kept };
}
