// @ts-check
/**
 * A run, from samples to the quantized model. It calibrates only if needed and can be cancelled at
 * any time. Results are cached while the page is open, so going back to one is instant.
 */

import { canonical, equalizes, inFull, needsMoments, needsSamples, passOf, runsAgain, tunes } from '../../settings-document.js';
import { bytes, duration } from '../../library/format.js';
import { batch, effect } from '../../library/signals.js';
import { stopMeasuring } from '../../state/background-task.js';
import { aborted, fail, problem, say } from '../../state/messages.js';
import { comparison, done, model, randomData, ranges, report, run, runHistory, sampleSettings, samples, settings, statistics, timing } from '../../state/page.js';
import { start } from '../../state/session.js';
import { forgotten } from '../../state/surroundings.js';
import { setAside } from '../data/sample-check.js';
import { usesSamples } from '../data/state.js';
import { blocked, forecast } from './state.js';

/** @import { Calibration, NamedFile, Progress, Settings } from '../../types.js' */
/** @import { Model } from '../../octet.js' */
/** @import { Done } from '../../state/page.js' */

/** The number of results in the run history. */
const remembered = 24;
/** Limit for the bytes of all cached files; results beyond it are made again on demand. */
const mostBytes = 5e8;

/**
 * Cached results with their inputs, by id.
 *
 * @type {Map<number, { done: Done, report: string, files: NamedFile[], reading: string, comparison: typeof comparison.value, timing: typeof timing.value }>}
 */
const results = new Map();
/**
 * The last result that the session made, and its worker. The session's report describes it.
 *
 * @type {{ id: number, home: unknown, of: Model | null }}
 */
let sessionResult = { id: 0, home: null, of: null };

effect(() => {
  void model.value;
  results.clear();
});
effect(() => {
  const [shown, reported, compared, timed] = [done.value, report.value, comparison.value, timing.value];
  if (!shown) return;
  const before = results.get(shown.id) ?? { files: observed(), reading: reading(), comparison: null, timing: null };
  results.set(shown.id, {
    ...before, done: shown, report: reported, comparison: compared?.id === shown.id ? compared : before.comparison, timing: timed?.id === shown.id ? timed : before.timing,
  });
  let size = 0;
  for (const [id, one] of [...results].reverse()) {
    size += one.done.result.file.size;
    if (size > mostBytes && id !== shown.id) results.delete(id);
  }
});

/** Files that the ranges follow from: those of another tool, statistics, or samples. Compared by identity. */
const observed = () => (ranges.value ?? statistics.value ?? samples.value).files;

/**
 * The settings that quantize: the document, and settings of tensors from a file of ranges. The
 * document wins, as on the command line.
 *
 * @param {Settings} document
 */
function settingsOf(document) {
  const tensors = ranges.peek()?.summary.tensors ?? {};
  return inFull(needsSamples(document) && Object.keys(tensors).length > 0 ? { ...document, tensors: { ...tensors, ...document.tensors } } : document);
}

const reading = () => JSON.stringify(sampleSettings());

/**
 * The cached result of these settings and the loaded samples.
 *
 * @param {Settings} document
 */
function cachedResult(document) {
  const wanted = canonical(inFull(document));
  const [files, read] = [observed(), reading()];
  return [...results.values()].reverse().find(({ done: one, ...from }) => canonical(inFull(one.document)) === wanted
    && (one.calibration ? from.files === files && from.reading === read : !usesSamples(document)));
}

/**
 * Shows the cached result of these settings with its measurements.
 *
 * @param {Settings} document
 * @returns {boolean} whether there is one
 */
export function show(document) {
  const found = cachedResult(document);
  if (!found || !runHistory.peek().some(({ id }) => id === found.done.id)) return false;
  stopMeasuring();
  batch(() => {
    done.value = found.done;
    report.value = found.report;
    comparison.value = found.comparison ?? comparison.peek();
    timing.value = found.timing ?? timing.peek();
  });
  notifyReplaced();
  return true;
}

/** True if the result belongs to other settings or samples than the current ones. */
export function stale() {
  const shown = done.value;
  if (!shown) return false;
  const { document } = settings.value;
  const files = observed();
  if (canonical(shown.document) !== canonical(document)) return true;
  const from = results.get(shown.id);
  if (!shown.calibration) return usesSamples(document);
  return Boolean(from && files.length > 0 && (from.files !== files || from.reading !== reading()));
}

/**
 * Makes the worker's session hold the current result, as going back to one does not involve the
 * worker. If that is impossible, the report on the page stays as it is.
 *
 * @returns {Promise<boolean>} whether it does
 */
export async function inSession() {
  const [open, shown] = [model.peek(), done.peek()];
  if (!open || !shown) return false;
  const can = !shown.calibration || calibrationServes(shown.document, true);
  if (!can) return false;
  if (sessionResult.id === shown.id && sessionResult.home === open.home && sessionResult.of === open) return true;
  await open.quantize(settingsOf(shown.document));
  sessionResult = { id: shown.id, home: open.home, of: open };
  return true;
}

/** Says that the worker's session makes something else than the result, whose report it then lacks. */
export function releaseSession() {
  sessionResult = { id: 0, home: null, of: null };
}

/** @type {AbortController | null} */
let running = null;
/** Ends the running calibration with the samples so far. @type {AbortController | null} */
let enough = null;
/**
 * The inputs of the worker's calibration. Files are compared by identity, as another sample may
 * have the same name and size.
 *
 * @type {{ model: Model, files: NamedFile[], reading: string, document: Settings, summary: Calibration } | null}
 */
let calibration = null;

/**
 * True if the calibration serves these settings, so that no samples run again. A calibration that
 * was ended early serves `quick` changes only; the button runs all samples.
 *
 * @param {Settings} document @param {boolean} [quick]
 */
export function calibrationServes(document, quick = false) {
  if (!calibration) return false;
  const { model: of, files, reading: read, summary } = calibration;
  const all = summary.samples + summary.skipped.length === summary.given;
  const same = of === model.peek() && of.calibrated && files === observed() && read === reading();
  return same && (quick || all) && !runsAgain(document, calibration.document);
}

/**
 * Calibrates if needed, quantizes, and shows the result.
 *
 * @param {{ quick?: boolean }} [how] `quick`: the result before stays on the page until the next is there
 */
export async function quantize({ quick = false } = {}) {
  const open = model.peek();
  if (!open || blocked.peek()) return;
  stopMeasuring();
  const mine = (running = new AbortController());
  const { files, source } = samples.peek();
  const demo = source === randomData;
  const { document } = settings.peek();
  const needed = usesSamples(document);
  const read = sampleSettings();
  const started = performance.now();
  const former = done.peek();
  let made = false;
  batch(() => {
    problem.value = null;
    if (!quick) done.value = null;
    run.value = { started, progress: { stage: quick ? 'Writing the quantized model' : 'Preparing the model' }, samplesStarted: null, curve: [], learned: [], quick };
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
      learned: progress.layer ? [...now.learned, progress.layer] : now.learned,
      samplesStarted: stage === now.progress.stage ? now.samplesStarted : progress.unit === 'samples' || progress.unit === 'layers' ? performance.now() : null,
      curve: memory ? [...now.curve, { at, stage, memory, done: progress.unit === 'samples' ? progress.done : undefined }] : now.curve,
    };
  };
  try {
    const { signal } = mine;
    const runs = needed && !calibrationServes(document, quick);
    const told = runs ? (forecast.peek()?.told ?? null) : null;
    if (runs) {
      enough = new AbortController();
      const [given, shared] = [ranges.peek(), statistics.peek()];
      const skipped = samples.peek().skipped.map(({ sample, reason }) => ({ sample, reason }));
      const summary = given ? await open.calibrateByRanges(given.files[0], { signal, onProgress }) : shared ? await open.calibrateByStatistics(shared.files, inFull(document), { signal, onProgress }) : await open.calibrate(files, { method: passOf(document), rounding: needsMoments(document) ? 'gptq' : 'nearest', equalize: equalizes(document), tuning: tunes(document) ? inFull(document) : undefined, journal: forgotten.peek() !== open, samples: { ...read, demo, skipped }, signal, enough: enough.signal }, onProgress);
      // Samples that failed are removed, so a comparison has only those that ran.
      const left = given || shared ? observed() : setAside(summary.skipped);
      calibration = { model: open, files: left, reading: JSON.stringify(read), document, summary };
    }
    const summary = needed && calibration ? calibration.summary : null;
    const { model: _, report: reported, ...result } = await open.quantize(settingsOf(document), { signal, onProgress });
    const memory = await start().then((octet) => octet.memory());
    const took = performance.now() - started;
    const curve = [...(run.peek()?.curve ?? []), { at: took, stage: 'Done', memory }];
    // Equal settings and samples give the same result, which keeps its place.
    const before = cachedResult(document)?.done;
    const again = summary && before?.calibration?.samples !== summary.samples ? undefined : runHistory.peek().find(({ id }) => id === before?.id);
    const id = again?.id ?? Math.max(0, ...runHistory.peek().map((one) => one.id)) + 1;
    const one = { metrics: {}, layers: {}, ...again, id, document, summary: result.summary, took };
    sessionResult = { id, home: open.home, of: open };
    batch(() => {
      run.value = null;
      report.value = reported;
      runHistory.value = again ? runHistory.peek().map((other) => (other.id === id ? one : other)) : [...runHistory.peek(), one].slice(-remembered);
      done.value = {
        result, took, memory, document, id,
        // A quick run has no timeline; the calibration's one stays.
        curve: quick ? (done.peek()?.curve ?? curve) : curve,
        calibration: summary,
        // Only runs with a calibration have a forecast.
        forecast: told,
        name: open.name,
      };
    });
    made = true;
    say(`Done in ${duration(took)}: ${bytes(result.summary.bytesBefore)} before, ${bytes(result.summary.bytesAfter)} after.`);
  } catch (error) {
    batch(() => {
      run.value = null;
      // Restore the previous result.
      if (!done.peek() && former && model.peek() === open) done.value = former;
    });
    // A refused quantization keeps the calibration, unless the worker lost it.
    if (!open.calibrated) calibration = null;
    if (aborted(error)) {
      say(`The run was cancelled; model, samples${former ? ', settings and the previous result' : ' and settings'} are kept.`);
    } else {
      fail('The run stopped', error, quick ? 'The previous result is kept; Undo reverts the change.' : `Model, samples${former ? ', settings and the previous result' : ' and settings'} are kept.`, () => quantize({ quick }));
    }
  } finally {
    if (running === mine) [running, enough] = [null, null];
  }
  if (quick) notifyReplaced();
  else if (made) for (const one of finished) one();
}

function notifyReplaced() {
  const id = done.peek()?.id;
  if (id !== undefined) for (const one of replaced) one(id);
}

/** Listeners that are called after a run with the button. @type {(() => unknown)[]} */
export const finished = [];

/** Listeners that are called when a result replaces another. @type {((id: number) => unknown)[]} */
export const replaced = [];

export function cancel() {
  if (running) running.abort();
  else if (stopMeasuring()) say('Cancelled; the result is kept.');
}

/** Ends the calibration with the samples so far and continues with them. */
export function endCalibration() {
  if (!enough || enough.signal.aborted) return;
  enough.abort();
  say('Continuing with the samples seen so far.');
}
