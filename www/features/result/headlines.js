// @ts-check
/**
 * The three main figures: size, accuracy with the number of samples, time with its band. Each shows
 * the change from the previous result.
 */

import { h } from '../../library/dom.js';
import { bytes, milliseconds, percent, plural, real } from '../../library/format.js';
import { computed } from '../../library/signals.js';
import { sentence } from '../../state/messages.js';
import { comparison, measuring, run, runHistory, samples, timing } from '../../state/page.js';
import { chooseOutput, measureBoth } from './measure.js';
import { recognized } from './ocr.js';
import { usedThreads } from './layer-times.js';
import { headlineOutput, judged, judgedOutputs, kindNames } from './outputs.js';
import { changed, compareTimes, runsDiffer, sharesDiffer } from './significance.js';
import { chosenOutput } from './state.js';

/** @import { Done, HistoryEntry } from '../../state/page.js' */
/** @import { Verdict } from './significance.js' */

/** @param {Done} done */
export function headlines(done) {
  const { bytesBefore, bytesAfter, advice } = done.result.summary;
  const grew = bytesAfter > bytesBefore;
  const compared = computed(() => comparison.value?.id === done.id);
  const measured = computed(() => compared.value && timing.value?.id === done.id);
  return [
    h('div', { class: 'headlines' },
      () => headline('Size', bytes(bytesAfter), `from ${bytes(bytesBefore)}`, grew ? 'larger than the float model' : `${(bytesAfter / bytesBefore).toFixed(2)} × the float size`,
        against(done, (one) => one.summary.bytesAfter, { text: bytes, moreIsBetter: false }), grew ? 'bad' : ''),
      () => accuracy(done),
      () => latency(done),
    ),
    // The first advice explains the growth, if the model grew.
    ...advice.map((text, index) => h('p', { class: `callout ${grew && index === 0 ? 'bad' : 'fair'}`, 'data-advice': true }, sentence(text))),
    () => !measured.value && measureButton(compared),
  ];
}

/** The button that measures the rest; it stays when the error is known. @param {{ readonly value: boolean }} compared */
function measureButton(compared) {
  const note = () => {
    const { length } = samples.value.refs;
    if (length === 0) return 'Needs samples: add some.';
    return compared.value ? 'Runs both models here on the first sample.' : `Runs both models here, on the ${length === 1 ? 'sample' : plural(length, 'sample')} above.`;
  };
  return h('div', { class: 'row' },
    h('button', {
      type: 'button', id: 'measure-both', disabled: () => run.value !== null || measuring.value !== null || samples.value.refs.length === 0, onclick: () => void measureBoth(),
    }, () => (compared.value ? 'Measure the time' : 'Measure accuracy and time')),
    h('span', { class: 'note' }, note));
}

/** @param {Done} done */
function accuracy(done) {
  const now = comparison.value;
  if (!now || now.id !== done.id) return headline('Accuracy', '–', 'not measured yet', '', null);
  const { outputs, samples: n } = now.found;
  const output = headlineOutput(now.found, chosenOutput.value);
  if (!output) return headline('Accuracy', '–', 'no output is a computed float, so the accuracy cannot be judged', `on ${plural(n, 'sample')}`, null);
  // Text is read from the first output.
  const lines = recognized.value?.id === done.id && output.name === outputs[0].name ? recognized.value.lines : null;
  const read = lines ? { same: lines.filter((line) => line.float === line.quantized).length, of: lines.length } : undefined;
  const { value, what, note, metric, kind } = judged(output, n, { read });
  const texts = /** @type {Record<string, (by: number) => string>} */ ({ sqnr: (by) => `${real(by)} dB`, cosine: real });
  const shares = ['top1', 'accuracy', 'boxes'].includes(metric);
  const change = against(done, (one) => one.outputs?.[output.name]?.[metric], {
    text: texts[metric] ?? percent, moreIsBetter: true, least: metric === 'sqnr' ? 0.05 : 0,
    // An output with several rows or boxes per sample has more than one outcome per sample. With
    // one class per sample, enough samples must have changed.
    differ: (is, was) => !shares || output.kind !== 'classes' || sharesDiffer(is, was, n),
  });
  return headline('Accuracy', value, what, `on ${plural(n, 'sample')}; ${note}`, change, kind, choice(outputs, output.name));
}

/**
 * The choice of the headline output.
 *
 * @param {import('../../types.js').OutputError[]} outputs
 * @param {string} shown
 */
function choice(outputs, shown) {
  const all = judgedOutputs(outputs);
  if (outputs.length < 2) return null;
  if (all.length < 2) return h('span', { class: 'note' }, `of ${shown}, the only computed float output`);
  return h('label', { class: 'row of-output' }, h('span', { class: 'note' }, 'of'),
    h('select', { class: 'small', id: 'headline-output', 'aria-label': 'Output whose accuracy is shown', value: shown, onchange: (/** @type {Event} */ event) => {
      chooseOutput(/** @type {HTMLSelectElement} */ (event.target).value);
      // The card was replaced, so the focus is restored.
      document.getElementById('headline-output')?.focus();
    } },
      ...all.map(({ name, kind }) => h('option', { value: name, selected: name === shown }, `${name} (${kindNames[kind]})`))));
}

/** @param {Done} done */
function latency(done) {
  const now = timing.value;
  if (!now || now.id !== done.id) return headline('Inference time', '–', 'not measured yet', '', null);
  const [float, quantized] = [now.float.totals.total, now.quantized.totals.total];
  const said = compareTimes(quantized, float);
  const change = against(done, (one) => one.metrics.ms, { text: milliseconds, moreIsBetter: false, differ: (_, __, one, other) => runsDiffer(one.metrics, other.metrics) });
  return headline('Inference time', milliseconds(quantized.median), `${milliseconds(float.median)} in float: ${said.text}`,
    `10 to 90 %: ${milliseconds(quantized.p10)} to ${milliseconds(quantized.p90)}; float ${milliseconds(float.p10)} to ${milliseconds(float.p90)}; ${usedThreads(now.float.totals, now.quantized.totals)}`, change, said.kind === 'bad' ? 'bad' : '');
}

/**
 * The change from the previous result; `null` if one of them is not measured.
 *
 * @param {Done} done
 * @param {(one: HistoryEntry) => number | undefined} of
 * @param {{ text: (by: number) => string, moreIsBetter: boolean, least?: number, differ?: (is: number, was: number, one: HistoryEntry, other: HistoryEntry) => boolean }} how
 * @returns {Verdict | null}
 */
function against(done, of, { differ, ...how }) {
  const mine = runHistory.value.find(({ id }) => id === done.id);
  const before = runHistory.value.filter(({ id }) => id < done.id).at(-1);
  const [is, was] = [mine && of(mine), before && of(before)];
  if (!mine || !before || is === undefined || was === undefined) return null;
  return changed(is, was, { ...how, differ: differ ? differ(is, was, mine, before) : true });
}

/** @param {string} title @param {string} value @param {string} what @param {string} more @param {Verdict | null} change @param {string} [kind] `bad` where it cost something @param {Node | null} [chosen] */
function headline(title, value, what, more, change, kind = '', chosen = null) {
  return h('div', { class: `headline ${kind}` }, h('span', { class: 'note' }, title), h('strong', {}, value), h('span', {}, what), chosen, more && h('span', { class: 'note' }, more),
    change && h('span', { class: `delta ${change.kind}` }, change.kind && h('span', { 'aria-hidden': 'true' }, change.kind === 'good' ? '▲ ' : '▼ '), change.text));
}
