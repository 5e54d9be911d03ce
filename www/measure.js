// @ts-check
/** What the result is worth: its error against the float model, layer by layer, and how long both take on this machine. */

import { errorsByNode, joined, timesByNode } from './layers.js';
import { say } from './messages.js';
import { aside, replaced } from './run.js';
import { batch } from './signals.js';
import { comparison, done, model, samples, timing, tried } from './state.js';
import { imageSettings, start } from './studio.js';

/** @import { Comparison, Run } from './types.js' */
/** @import { Figures } from './layers.js' */

/** Runs that are timed, and those before them that are not. */
const [timed, before] = [10, 2];

/** Adds figures to a result in the list of what was tried. @param {number} id @param {Record<string, number>} metrics @param {Figures} layers */
function note(id, metrics, layers) {
  tried.value = tried.peek().map((one) => (one.id === id ? { ...one, metrics: { ...one.metrics, ...metrics }, layers: joined(one.layers, layers) } : one));
}

/** Holds the result against the float model on the samples that are here. */
export function measureError() {
  const [open, shown] = [model.peek(), done.peek()];
  const { files, refs, labels } = samples.peek();
  if (!open || !shown || refs.length === 0) return;
  return aside('Comparing with the float model', async (signal, onProgress) => {
    const numbers = Object.fromEntries([...labels].map(([name, label]) => [name, Number(label)]));
    const found = await open.compare(shown.result.file, files, { samples: { image: imageSettings() }, labels: numbers, signal }, onProgress);
    // The report tells it too, from now on.
    const report = await open.report();
    batch(() => {
      if (done.peek() === shown) done.value = { ...shown, result: { ...shown.result, report } };
      comparison.value = { id: shown.id, found };
      note(shown.id, metricsOf(found), errorsByNode(found));
    });
    say(`Compared on ${found.samples} samples.${found.worst[0] ? ` ${found.worst[0]} adds most of the error.` : ''}`);
  });
}

/** The figures of the first output that tell a result from another; `error` is the noise over the signal, so that less is better. @param {Comparison} found */
function metricsOf({ outputs: [first] }) {
  if (!first) return {};
  /** @type {Record<string, number>} */
  const metrics = { error: 10 ** (-first.apart.sqnr / 20), sqnr: first.apart.sqnr };
  if (first.top1 !== null) metrics.top1 = first.top1;
  if (first.accuracy !== null) [metrics.floatAccuracy, metrics.accuracy] = first.accuracy;
  return metrics;
}

/** The float model's time, as long as model, sample and the way it is read are the same. @type {{ model: object, sample: object, reading: string, run: Run } | null} */
let floatTime = null;

/** Runs the float model and the result on the first sample, one after the other. */
export function measureTime() {
  const [open, shown] = [model.peek(), done.peek()];
  const { files, refs } = samples.peek();
  if (!open || !shown || refs.length === 0) return;
  const sample = files.filter((file) => refs[0].parts.includes(file.path));
  return aside('Timing both models', async (signal) => {
    const options = { samples: { image: imageSettings() }, runs: timed, warmUp: before, signal };
    const reading = JSON.stringify(options.samples);
    const same = floatTime?.model === open && floatTime.sample === sample[0] && floatTime.reading === reading;
    const float = same && floatTime ? floatTime.run : await open.run(sample, options);
    floatTime = { model: open, sample: sample[0], reading, run: float };
    const octet = await start();
    const quantized = await octet.run(shown.result.file, sample, options);
    batch(() => {
      timing.value = { id: shown.id, float, quantized };
      note(shown.id, { ms: quantized.totals.total.median, floatMs: float.totals.total.median }, timesByNode(float, quantized));
    });
    say(`The float model takes ${float.totals.total.median.toFixed(1)} milliseconds, the quantized one ${quantized.totals.total.median.toFixed(1)}.`);
  });
}

/** Both, one after the other; what is known already is left alone. */
export async function measureBoth() {
  const id = done.peek()?.id;
  if (comparison.peek()?.id !== id) await measureError();
  if (timing.peek()?.id !== id && comparison.peek()?.id === id) await measureTime();
}

// Who asked for the error or the time of the result before wants that of the next.
replaced.push(async (id) => {
  const [error, time] = [comparison.peek(), timing.peek()];
  if (error && error.id !== id) await measureError();
  if (time && time.id !== id && done.peek()?.id === id) await measureTime();
});
