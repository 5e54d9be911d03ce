// @ts-check
/** One run, from the samples to the quantized model: calibrated only where it must be, cancelled at any moment. */

import { equalizes, needsMoments, needsSamples, passOf, runsAgain } from './document.js';
import { bytes, duration } from './format.js';
import { aborted, fail, problem, say } from './messages.js';
import { batch } from './signals.js';
import { blocked, done, forecast, model, run, samples, randomData, settings, tried } from './state.js';
import { setAside } from './looking.js';
import { imageSettings, start } from './studio.js';

/** @import { CalibrationSummary, NamedFile, Progress, QuantizeSettings } from './types.js' */
/** @import { Model } from './octet.js' */

/** How many results are remembered. */
const remembered = 24;

/** @type {AbortController | null} */
let running = null;
/** Ends the calibration that is under way with what it has seen. @type {AbortController | null} */
let enough = null;
/**
 * What the ranges that the worker holds were made from. Files are told by identity: another sample may have the name and size of
 * the one before.
 *
 * @type {{ model: Model, files: NamedFile[], reading: string, document: QuantizeSettings, summary: CalibrationSummary } | null}
 */
let calibration = null;

/**
 * Whether the ranges that are held do for these settings; else the samples run again. A calibration that was ended early does for a
 * `quick` change; who presses the button again wants all samples.
 *
 * @param {QuantizeSettings} document @param {boolean} [quick]
 */
export function held(document, quick = false) {
  if (!calibration) return false;
  const { model: of, files, reading, summary } = calibration;
  const all = summary.samples + summary.skipped.length === summary.given;
  const same = of === model.peek() && of.calibrated && files === samples.peek().files && reading === JSON.stringify(imageSettings());
  return same && (quick || all) && !runsAgain(document, calibration.document);
}

/**
 * Calibrates where needed, quantizes, and shows what came of it.
 *
 * @param {{ quick?: boolean }} [how] `quick`: the result before stays on the page until the next is there
 */
export async function quantize({ quick = false } = {}) {
  const open = model.peek();
  if (!open || blocked.peek()) return;
  const mine = (running = new AbortController());
  const { files, source } = samples.peek();
  const demo = source === randomData;
  const { document } = settings.peek();
  const needed = needsSamples(document);
  const image = imageSettings();
  const started = performance.now();
  batch(() => {
    problem.value = null;
    if (!quick) done.value = null;
    run.value = { started, progress: { stage: quick ? 'Writing the quantized model' : 'Preparing the model' }, samplesStarted: null, curve: [], quick };
  });
  if (!quick) say('The run has started.');
  /** @param {Progress} progress */
  const onProgress = (progress) => {
    const now = run.peek();
    if (running !== mine || !now) return;
    const at = performance.now() - started;
    const { memory, stage } = progress;
    run.value = {
      ...now,
      progress: { ...progress, memory: memory ?? now.progress.memory, ranges: progress.ranges ?? now.progress.ranges },
      samplesStarted: stage === now.progress.stage ? now.samplesStarted : progress.unit === 'samples' ? performance.now() : null,
      curve: memory ? [...now.curve, { at, stage, memory, done: progress.unit === 'samples' ? progress.done : undefined }] : now.curve,
    };
  };
  try {
    const { signal } = mine;
    const runs = needed && !held(document, quick);
    const told = runs ? (forecast.peek()?.told ?? null) : null;
    if (runs) {
      enough = new AbortController();
      const skipped = samples.peek().skipped.map(({ sample, reason }) => ({ sample, reason }));
      const summary = await open.calibrate(files, { method: passOf(document), rounding: needsMoments(document) ? 'gptq' : 'nearest', equalize: equalizes(document), samples: { image, demo, skipped }, signal, enough: enough.signal }, onProgress);
      // What could not be run is in nobody's way any more: a comparison has the samples that were run.
      const left = setAside(summary.skipped);
      calibration = { model: open, files: left, reading: JSON.stringify(image), document, summary };
    }
    const summary = needed && calibration ? calibration.summary : null;
    // Said in full: else the method would be the one the calibration was ended with.
    const said = (document.scheme ?? 'static') === 'static' ? { method: 'minmax', ...document } : document;
    const result = await open.quantize(said, { signal, onProgress });
    const memory = await start().then((octet) => octet.memory());
    const took = performance.now() - started;
    const curve = [...(run.peek()?.curve ?? []), { at: took, stage: 'Done', memory }];
    const id = (tried.peek().at(-1)?.id ?? 0) + 1;
    batch(() => {
      run.value = null;
      tried.value = [...tried.peek(), { id, document, summary: result.summary, took, metrics: {}, layers: {} }].slice(-remembered);
      done.value = {
        result, took, memory, document, id,
        // A quick run has no story of its own: the one of the calibration stays.
        curve: quick ? (done.peek()?.curve ?? curve) : curve,
        calibration: summary,
        // Told of a run with calibration; other settings take a moment only.
        forecast: told,
        name: open.name,
      };
    });
    say(`Done in ${duration(took)}: ${bytes(result.summary.bytesBefore)} became ${bytes(result.summary.bytesAfter)}.`);
  } catch (error) {
    run.value = null;
    // A refusal leaves the ranges as they were; whether the worker still holds them, it is asked.
    if (!open.calibrated) calibration = null;
    if (aborted(error)) {
      say('The run was cancelled; model, samples and settings are kept.');
    } else {
      fail('The run stopped', error, quick ? 'The result before is kept; undo takes the change back.' : 'Model, samples and settings are kept.', () => quantize({ quick }));
    }
  } finally {
    if (running === mine) [running, enough] = [null, null];
  }
  if (quick && done.peek()) for (const tell of replaced) tell(done.peek()?.id ?? 0);
}

/**
 * Something that takes a while and is cancelled like a run; the result stays on the page meanwhile.
 *
 * @param {string} stage
 * @param {(signal: AbortSignal, onProgress: (progress: Progress) => void) => Promise<void>} work
 */
export async function aside(stage, work) {
  if (run.peek()) return;
  const mine = (running = new AbortController());
  run.value = { started: performance.now(), progress: { stage }, samplesStarted: null, curve: [], quick: true };
  say(`${stage}.`);
  try {
    await work(mine.signal, (progress) => {
      const now = run.peek();
      if (running === mine && now) run.value = { ...now, progress: { ...progress, stage: progress.stage || stage } };
    });
  } catch (error) {
    if (aborted(error)) say('Cancelled; the result is kept.');
    else fail(`${stage} did not work`, error, 'The result is kept and can be downloaded.');
  } finally {
    run.value = null;
    if (running === mine) running = null;
  }
}

/** Called when a result took the place of one before it. @type {((id: number) => unknown)[]} */
export const replaced = [];

export function cancel() {
  running?.abort();
}

/** Ends the calibration with the samples that were seen, and goes on with them. */
export function suffice() {
  if (!enough || enough.signal.aborted) return;
  enough.abort();
  say('Going on with the samples seen so far.');
}
