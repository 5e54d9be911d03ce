// @ts-check
/**
 * Measurements of the result: its error against the float model, layer by layer, and the time of
 * both on this machine. If one fails, the other is still measured.
 */

import { batch } from '../../library/signals.js';
import { inBackground } from '../../state/background-task.js';
import { say, sentence } from '../../state/messages.js';
import { comparison, done, measuring, model, report, run, runHistory, sampleSettings, samples, timing } from '../../state/page.js';
import { start } from '../../state/session.js';
import { finished, inSession, replaced } from '../run/run.js';
import { errorsByNode, mergeFigures } from './figures.js';
import { layerTimes, timesByNode } from './layer-times.js';
import { readLines, recognized } from './ocr.js';
import { headlineOutput, metricsOf } from './outputs.js';
import { chosenOutput, unmeasured } from './state.js';

/** @import { Comparison, SampleAnswer } from '../../types.js' */
/** @import { HistoryEntry } from '../../state/page.js' */

/** Numbers of measured runs and of warm-up runs. */
const [timed, before] = [10, 2];

/**
 * Adds measurements to a result in the run history.
 *
 * @param {number} id
 * @param {(one: HistoryEntry) => Partial<HistoryEntry>} what
 */
function note(id, what) {
  runHistory.value = runHistory.peek().map((one) => (one.id === id ? { ...one, ...what(one) } : one));
}

/**
 * Records why a measurement failed, for display in its place.
 *
 * @param {number} id
 * @param {'error' | 'time'} half
 * @param {unknown} error
 */
function failed(id, half, error) {
  const now = unmeasured.peek();
  const why = error ? sentence(error instanceof Error ? error.message : String(error)) : '';
  unmeasured.value = { ...(now.id === id ? now : { error: '', time: '' }), id, [half]: why };
  if (why) say(`${half === 'error' ? 'The error' : 'The time'} could not be measured. ${why}`);
}

/**
 * Compares the result with the float model on the loaded samples: first the outputs, which takes a
 * few seconds, then every layer.
 *
 * @param {{ split?: boolean }} [how] `split`: with weights alone and activations alone, too
 */
export async function measureError({ split = false } = {}) {
  const [open, shown] = [model.peek(), done.peek()];
  const { files, refs, labels } = samples.peek();
  if (!open || !shown || refs.length === 0) return;
  const error = await inBackground(split ? 'Splitting the error into weights and activations' : 'Comparing with the float model', async (gently, onProgress) => {
    const numbers = Object.fromEntries([...labels].map(([name, label]) => [name, Number(label)]));
    const options = { samples: sampleSettings(), labels: numbers, gently };
    const mine = await inSession();
    gently.throwIfAborted();
    /** @type {SampleAnswer[] | null} */
    let answers = null;
    if (comparison.peek()?.id !== shown.id) {
      const first = await open.compare(shown.result.file, files, { ...options, layers: false, answers: true }, onProgress);
      gently.throwIfAborted();
      answers = first.answers;
      batch(() => {
        comparison.value = { id: shown.id, found: first, whole: false };
        note(shown.id, (one) => noted(one, first));
      });
      say(`Compared the outputs on ${first.samples} samples. The layers follow.`);
    }
    const all = await open.compare(shown.result.file, files, { ...options, split, answers: !answers }, onProgress);
    const found = { ...all, answers: answers ?? all.answers };
    // From now on the report contains the comparison.
    const reported = mine ? await open.report() : report.peek();
    gently.throwIfAborted();
    batch(() => {
      report.value = reported;
      comparison.value = { id: shown.id, found, whole: true };
      note(shown.id, (one) => noted(one, found));
    });
    say(`Compared on ${found.samples} samples.${found.worst[0] ? ` ${found.worst[0]} adds most of the error.` : ''}`);
  });
  failed(shown.id, 'error', error);
}

/** @param {HistoryEntry} one @param {Comparison} found @returns {Partial<HistoryEntry>} */
function noted(one, found) {
  const outputs = Object.fromEntries(found.outputs.map((output) => [output.name, metricsOf(output)]));
  const head = headlineOutput(found, chosenOutput.peek());
  return { outputs, metrics: { ...timesOnly(one.metrics), ...(head ? outputs[head.name] : {}) }, layers: mergeFigures(one.layers, errorsByNode(found)) };
}

/** @param {Record<string, number>} metrics */
const timesOnly = (metrics) => Object.fromEntries(Object.entries(metrics).filter(([key]) => /^ms|^float(Ms|Low|High)$/.test(key)));

/** Selects the headline output; the run history shows its figures, too. @param {string} name */
export function chooseOutput(name) {
  batch(() => {
    chosenOutput.value = name;
    runHistory.value = runHistory.peek().map((one) => (one.outputs?.[name] ? { ...one, metrics: { ...timesOnly(one.metrics), ...one.outputs[name] } } : one));
  });
}

/**
 * Times the float model and the result on the first sample. Both are timed every time, as the load
 * of the machine changes.
 */
export async function measureTime() {
  const [open, shown] = [model.peek(), done.peek()];
  const { files, refs } = samples.peek();
  if (!open || !shown || refs.length === 0) return;
  const sample = files.filter((file) => refs[0].parts.includes(file.path));
  const error = await inBackground('Timing both models', async (gently) => {
    const options = { samples: sampleSettings(), runs: timed, warmUp: before, gently };
    const float = await open.run(sample, options);
    gently.throwIfAborted();
    const octet = await start();
    const quantized = await octet.run(shown.result.file, sample, options);
    gently.throwIfAborted();
    const [f, q] = [float.totals.total, quantized.totals.total];
    batch(() => {
      timing.value = { id: shown.id, float, quantized };
      note(shown.id, (one) => ({
        metrics: { ...one.metrics, ms: q.median, msLow: q.p10, msHigh: q.p90, floatMs: f.median, floatLow: f.p10, floatHigh: f.p90 },
        layers: mergeFigures(one.layers, timesByNode(layerTimes(float), layerTimes(quantized))),
      }));
    });
    say(`The float model takes ${f.median.toFixed(1)} milliseconds, the quantized one ${q.median.toFixed(1)}.`);
  });
  failed(shown.id, 'time', error);
}

/** True if the outputs and the layers of a result were compared. @param {number} id */
function isCompared(id) {
  const now = comparison.peek();
  return now?.id === id && now.whole;
}

/** Measures error and time, unless known. Text models are read, too. */
export async function measureBoth() {
  const shown = done.peek();
  if (!shown) return;
  if (!isCompared(shown.id)) await measureError();
  if (!settled(shown.id, 'error')) return;
  if (timing.peek()?.id !== shown.id) await measureTime();
  if (settled(shown.id, 'time') && samples.peek().characters.length > 0 && recognized.peek()?.id !== shown.id) await readLines();
}

/**
 * True if a measurement of the current result is done or has failed; false if it was stopped.
 *
 * @param {number} id
 * @param {'error' | 'time'} half
 */
function settled(id, half) {
  if (done.peek()?.id !== id || measuring.peek() || run.peek()) return false;
  const known = half === 'error' ? isCompared(id) : timing.peek()?.id === id;
  return known || (unmeasured.peek().id === id && unmeasured.peek()[half] !== '');
}

// Each run is followed by its error and its verdict; the time is measured on request.
finished.push(() => measureError());

// The error of another result is measured as well, and its time if the previous one was timed.
replaced.push(async (id) => {
  const time = timing.peek();
  if (!isCompared(id)) {
    await measureError();
    if (!settled(id, 'error')) return;
  }
  if (time && time.id !== id) await measureTime();
});
