// @ts-check
/** The three figures that count: size, accuracy with the number of samples, time with its band; each with its change against the result before. */

import { h } from '../dom.js';
import { bytes, milliseconds, percent, plural, real } from '../format.js';
import { measureBoth } from '../measure.js';
import { comparison, run, samples, timing, tried } from '../state.js';

/** @import { Done, Tried } from '../state.js' */

/** @param {Done} done */
export function headlines(done) {
  const { bytesBefore, bytesAfter } = done.result.summary;
  return [
    h('div', { class: 'headlines' },
      headline('Size', bytes(bytesAfter), `from ${bytes(bytesBefore)}`, `${(bytesAfter / bytesBefore).toFixed(2)} of its size`, changed(done, (one) => one.summary.bytesAfter, bytes, false)),
      () => accuracy(done),
      () => latency(done),
    ),
    () => (comparison.value?.id === done.id && timing.value?.id === done.id ? null
      : h('div', { class: 'row' },
        h('button', { type: 'button', id: 'measure-both', disabled: () => run.value !== null || samples.value.refs.length === 0, onclick: () => void measureBoth() }, 'Measure accuracy and time'),
        h('span', { class: 'note' }, samples.value.refs.length === 0 ? 'Needs samples: add some.' : `Runs both models here, on ${samples.value.refs.length === 1 ? 'the sample' : `the ${plural(samples.value.refs.length, 'sample')}`} that ${samples.value.refs.length === 1 ? 'is' : 'are'} here.`))),
  ];
}

/** @param {Done} done */
function accuracy(done) {
  const now = comparison.value;
  const first = now?.id === done.id ? now.found.outputs[0] : undefined;
  if (!now || !first) return headline('Accuracy', '–', 'not measured yet', '', '');
  const n = plural(now.found.samples, 'sample');
  const sqnr = first.apart.sqnr >= 200 ? 'no noise' : `noise at −${first.apart.sqnr.toFixed(1)} dB`;
  if (first.accuracy) {
    const [float, quantized] = first.accuracy;
    return headline('Accuracy', percent(quantized), `right; ${percent(float)} in float`, `on ${n}; ${sqnr}`, changed(done, (one) => one.metrics.accuracy, percent, true), quantized < float ? 'bad' : '');
  }
  if (first.top1 !== null) return headline('Accuracy', percent(first.top1), 'same first answer as in float', `on ${n}; ${sqnr}`, changed(done, (one) => one.metrics.top1, percent, true), first.top1 < 0.9 ? 'bad' : '');
  return headline('Accuracy', first.apart.sqnr >= 200 ? 'equal' : `${first.apart.sqnr.toFixed(1)} dB`, 'signal over noise', `on ${n}; cosine ${first.apart.cosine.toFixed(4)}`, changed(done, (one) => one.metrics.sqnr, (by) => `${real(by)} dB`, true));
}

/** @param {Done} done */
function latency(done) {
  const now = timing.value;
  if (!now || now.id !== done.id) return headline('Time of a run', '–', 'not measured yet', '', '');
  const [float, quantized] = [now.float.totals.total, now.quantized.totals.total];
  const ratio = quantized.median / float.median;
  return headline('Time of a run', milliseconds(quantized.median), `${milliseconds(float.median)} in float: ${ratio > 1 ? 'slower' : 'faster'}, ${ratio.toFixed(2)} of its time`,
    `10 to 90 %: ${milliseconds(quantized.p10)} to ${milliseconds(quantized.p90)}`, changed(done, (one) => one.metrics.ms, milliseconds, false), ratio > 1 ? 'bad' : '');
}

/**
 * How much more or less than in the result before, and whether that is better; nothing where one of them is not measured.
 *
 * @param {Done} done
 * @param {(one: Tried) => number | undefined} of
 * @param {(by: number) => string} text
 * @param {boolean} moreIsBetter
 */
function changed(done, of, text, moreIsBetter) {
  const mine = tried.value.find(({ id }) => id === done.id);
  const before = tried.value.filter(({ id }) => id < done.id).at(-1);
  const [is, was] = [mine && of(mine), before && of(before)];
  if (is === undefined || was === undefined) return '';
  if (is === was) return 'as before';
  return `${is > was ? '+' : '−'}${text(Math.abs(is - was))} against the one before, ${is > was === moreIsBetter ? 'better' : 'worse'}`;
}

/** @param {string} title @param {string} value @param {string} what @param {string} more @param {string} change @param {string} [kind] `bad` where it cost something */
function headline(title, value, what, more, change, kind = '') {
  return h('div', { class: `headline ${kind}` }, h('span', { class: 'note' }, title), h('strong', {}, value), h('span', {}, what), more && h('span', { class: 'note' }, more), change && h('span', { class: 'note delta' }, change));
}
