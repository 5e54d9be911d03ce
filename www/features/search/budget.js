// @ts-check
/** Budgets of a search: their kinds, units and words, as the command line writes them. */

import { percent, real } from '../../library/format.js';

/** @import { Estimate, Metric } from '../../types.js' */
/** @typedef {'accuracy' | 'kl' | 'sqnr' | 'bytes' | 'time'} Kind */

/**
 * Kinds of budgets. `units`: words for each unit of the command line, the usual one first.
 *
 * @type {Record<Kind, { title: string, amount: number, step: number, units: Record<string, string>, note: string }>}
 */
export const budgets = {
  accuracy: { title: 'Answers lost, at most', amount: 0.5, step: 0.1, units: { '%': '% of the answers' }, note: 'With labels: answers that were right and are wrong now. Without labels: answers that differ from the float model’s. For classifiers.' },
  kl: { title: 'KL divergence, at most', amount: 0.01, step: 0.005, units: { '': 'nats' }, note: 'The mean distance of the class probabilities from those of the float model. For classifiers.' },
  sqnr: { title: 'Signal over noise, at least', amount: 30, step: 1, units: { dB: 'dB' }, note: 'The power of the outputs over the power of their error (SQNR). For every kind of model.' },
  bytes: { title: 'File size, at most', amount: 30, step: 1, units: { '%': '% of the float file', MB: 'MB', kB: 'kB' }, note: 'The most accurate model whose file is not larger.' },
  time: { title: 'Time of a run, at most', amount: 60, step: 1, units: { '%': '% of the float model’s', ms: 'ms' }, note: 'The most accurate model that is not slower. Milliseconds need measured times, so the layers are timed in this browser.' },
};

/**
 * A budget as the command line writes it.
 *
 * @param {Kind} kind
 * @param {number} amount
 * @param {string} unit
 */
export const budgetText = (kind, amount, unit) => `${kind}=${amount}${unit}`;

/** Names of metrics. @type {Record<Metric, string>} */
export const metricNames = { labels: 'Answers lost', agreement: 'Answers changed', kl: 'KL divergence', sqnr: 'Signal over noise' };

/** @param {number} noise */
const decibels = (noise) => (noise > 0 ? -10 * Math.log10(noise) : 200);

/** @param {Metric} metric @param {number} value */
function figure(metric, value) {
  if (metric === 'sqnr') return `${decibels(value).toFixed(1)} dB`;
  return metric === 'kl' ? real(value) : percent(value);
}

/**
 * An error with its interval, in the words of its metric.
 *
 * @param {Metric} metric
 * @param {Estimate} error
 */
export function estimateText(metric, { value, low, high }) {
  const ends = metric === 'sqnr' ? [high, low] : [low, high];
  return `${figure(metric, value)} (${ends.map((end) => figure(metric, end)).join(' to ')})`;
}
