// @ts-check
/**
 * Outputs of a comparison: the headline output, and the figure by which an output is judged. The
 * engine determines the kind of an output.
 */

import { count, percent, real } from '../../library/format.js';
import { compareAccuracy } from './significance.js';

/** @import { Comparison, OutputError } from '../../types.js' */

/** @param {number} sqnr */
export const decibels = (sqnr) => (sqnr >= 200 ? 'equal' : `${sqnr.toFixed(1)} dB`);

/**
 * Outputs that show how well a model was quantized: neither integers nor inputs passed through.
 *
 * @param {OutputError[]} all
 */
export const judgedOutputs = (all) => all.filter(({ kind }) => kind !== 'integers' && kind !== 'passed');

/**
 * The headline output: the user's choice, or the worst.
 *
 * @param {Pick<Comparison, 'outputs' | 'headline'>} found
 * @param {string} chosen
 */
export function headlineOutput({ outputs, headline }, chosen) {
  const all = judgedOutputs(outputs);
  return all.find(({ name }) => name === chosen) ?? all.find(({ name }) => name === headline) ?? all[0];
}

/** The figures of a language model as a sentence. @param {NonNullable<OutputError['tokens']>} tokens */
export const languageNote = ({ kl, perplexity }) => `KL divergence ${real(kl)} nats${perplexity ? `, perplexity ${real(perplexity[0])} in float, ${real(perplexity[1])} quantized` : ''}`;

/** Names of the kinds of outputs. @type {Record<OutputError['kind'], string>} */
export const kindNames = {
  classes: 'classes', steps: 'classes per step', tokens: 'tokens', embedding: 'embedding', boxes: 'boxes', scores: 'scores of boxes', values: 'values', integers: 'integers', passed: 'passed through',
};

/**
 * The figures of an output by name.
 *
 * @param {OutputError} output
 * @returns {Record<string, number>}
 */
export function metricsOf({ apart, top1, accuracy, boxes, kind }) {
  /** @type {Record<string, number>} */
  const metrics = { sqnr: apart.sqnr };
  if (kind === 'embedding') metrics.cosine = apart.cosine;
  if (top1 !== null) metrics.top1 = top1;
  if (boxes && boxes.confident > 0) metrics.boxes = boxes.found / boxes.confident;
  if (accuracy !== null) [metrics.floatAccuracy, metrics.accuracy] = accuracy;
  return metrics;
}

/**
 * The figure by which an output is judged.
 *
 * @param {OutputError} output
 * @param {number} samples
 * @param {{ read?: { same: number, of: number } }} [more] `read`: of a reader of text, how many lines are read alike
 * @returns {{ value: string, what: string, note: string, metric: string, kind: '' | 'good' | 'bad' }}
 */
export function judged(output, samples, { read } = {}) {
  const { kind, apart, top1, accuracy, boxes, parts, tokens } = output;
  const sqnr = apart.sqnr >= 200 ? 'equal to float' : `SQNR ${decibels(apart.sqnr)}`;
  if (read) {
    return { value: percent(read.same / Math.max(read.of, 1)), what: `of ${count(read.of)} lines read the same as in float`, note: sqnr, metric: 'top1', kind: read.same < read.of * 0.9 ? 'bad' : '' };
  }
  if (accuracy) {
    const said = compareAccuracy(accuracy[0], accuracy[1], samples);
    return { value: percent(accuracy[1]), what: said.text, note: sqnr, metric: 'accuracy', kind: said.kind };
  }
  if (kind === 'classes' && top1 !== null) return { value: percent(top1), what: 'top-1 agreement with float', note: sqnr, metric: 'top1', kind: top1 < 0.9 ? 'bad' : '' };
  if (tokens && top1 !== null) return { value: percent(top1), what: `same most likely token as float at ${count(tokens.positions)} positions`, note: languageNote(tokens), metric: 'top1', kind: top1 < 0.9 ? 'bad' : '' };
  if (kind === 'steps' && top1 !== null) return { value: percent(top1), what: 'top-1 agreement with float over all steps', note: sqnr, metric: 'top1', kind: top1 < 0.9 ? 'bad' : '' };
  if (boxes) {
    const apartly = parts ? `SQNR of boxes ${decibels(parts.boxes)}, of scores ${decibels(parts.scores)}` : sqnr;
    if (boxes.confident === 0) return { value: decibels(parts ? Math.min(parts.boxes, parts.scores) : apart.sqnr), what: 'SQNR; the float model scores no box above 0.25, so boxes cannot be matched', note: apartly, metric: 'sqnr', kind: '' };
    const share = boxes.found / boxes.confident;
    return {
      value: percent(share), what: `of ${count(boxes.confident)} confident boxes matched`, note: `${boxes.extra > 0 ? `${count(boxes.extra)} extra; ` : ''}${apartly}`,
      metric: 'boxes', kind: share < 0.9 ? 'bad' : '',
    };
  }
  if (kind === 'embedding') return { value: apart.cosine.toFixed(4), what: 'cosine similarity to the float embedding', note: sqnr, metric: 'cosine', kind: apart.cosine < 0.95 ? 'bad' : '' };
  return { value: decibels(apart.sqnr), what: 'SQNR: signal to quantization noise ratio', note: `cosine ${apart.cosine.toFixed(4)}`, metric: 'sqnr', kind: '' };
}
