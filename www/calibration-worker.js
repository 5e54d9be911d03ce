// @ts-check
/**
 * Calibration in the worker: samples are read ahead and run in parallel, as often as the method
 * needs them. Learned rounding follows with the same samples.
 */

import { loaded, memory, samplesOf, session, threads } from './loaded-engine.js';
import { slot } from './shared-memory.js';

/** @import { Calibration, Forecast, LayerReport, NamedFile, SampleSettings, Settings } from './types.js' */
/** @import { Arguments } from './calls.js' */
/** @import { Report, Sample, Session } from './loaded-engine.js' */

/**
 * Samples of up to this many bytes are queued before a thread is free, one per thread, as they run
 * only for a short time. Larger samples run long enough for the next one to be queued when one
 * ends; then one sample waits, for any number of threads.
 */
const light = 1 << 18;

/** Interval in milliseconds of memory reports while samples run. */
const interval = 100;

/**
 * Runs the samples and collects statistics of every tensor.
 *
 * @param {Arguments<'calibrate'>} args
 * @param {Report} report
 * @param {() => Promise<boolean>} enough
 * @returns {Promise<Calibration>}
 */
export async function calibrate({ key, files, tuning, journal, ...how }, report, enough) {
  const open = session(key);
  const all = samplesOf(files);
  loaded().resetControl();
  report({ stage: 'Preparing the model', memory: memory() });
  const { seen, summary } = await calibrateSession(open, all, how, report, enough);
  const tuned = tuning ? await tune(open, all.slice(0, seen), { settings: tuning, samples: how.samples, journal }, report) : null;
  return { ...summary, given: all.length, tuned };
}

/**
 * Runs samples in a session, as often as the method needs them.
 *
 * @param {Session} open
 * @param {Sample[]} all
 * @param {Pick<Arguments<'calibrate'>, 'method' | 'rounding' | 'equalize' | 'samples'>} how
 * @param {Report} report
 * @param {() => Promise<boolean>} enough
 */
export async function calibrateSession(open, all, { method, rounding, equalize, samples }, report, enough) {
  open.beginCalibration(samples, equalize ?? false);
  const seen = await feed(open, all, 'Calibrating', report, enough);
  // Extra passes run over the same samples as the first.
  while (open.beginFurtherPass(method, rounding === 'gptq')) await feed(open, all.slice(0, seen), 'Extra pass', report, async () => false);
  return { seen, summary: open.finishCalibration(method) };
}

/** The cost of a calibration. @param {Arguments<'forecast'>} args @returns {Promise<Forecast>} */
export async function forecast({ key, files, method, samples, settings }) {
  loaded().resetControl();
  const all = samplesOf(files);
  const [first] = all;
  if (!first) throw Object.assign(new Error('There is no sample among these files.'), { kind: 'sample' });
  // Files of the next samples are read while others run.
  const ahead = threads === 1 ? 1 : underWay(first) + 1;
  return await session(key).forecast(first.name, first.files, samples, all.length, ahead, method, settings);
}

/**
 * Learns constants from the samples, and reports each layer.
 *
 * @param {Session} open
 * @param {Sample[]} all
 * @param {{ settings: Settings, samples: SampleSettings, journal?: boolean }} how
 * @param {Report} report
 * @returns {Promise<NonNullable<Calibration['tuned']>>}
 */
async function tune(open, all, { settings, samples, journal: keeps }, report) {
  report({ stage: 'Preparing the fine-tuning', memory: memory() });
  const { data_size: most = all.length, mem_opt_level: level = 1 } = typeof settings.finetune === 'object' ? settings.finetune ?? {} : {};
  const values = level === 2 ? await (await import('./value-file.js')).openValueFile() : undefined;
  const journal = keeps ? await (await import('./tuning-journal.js')).openJournal() : null;
  try {
    const layers = open.beginTuning(settings, values);
    for (const { name, files } of all.slice(0, most)) await open.addTuningSample(name, files, samples);
    Atomics.store(loaded().control(), slot.done, 0);
    const [resumed, whole] = journal ? open.resumeTuning(journal.read()) : [0, 0];
    journal?.begin(open.tuningJournal(), whole);
    let done = 0;
    const progress = () => ({ stage: 'Fine-tuning', done, of: layers, unit: 'layers', memory: memory(), resumed });
    report(progress());
    const told = (/** @type {LayerReport} */ layer) => {
      done += 1;
      report({ ...progress(), layer });
    };
    const summary = open.tune(told, (/** @type {Uint8Array<ArrayBuffer>} */ record) => journal?.add(record));
    return { ...summary, resumed };
  } finally {
    journal?.close();
    await values?.close();
  }
}

/**
 * Runs all samples once. Each is queued early enough that no thread waits, while the files of the
 * next are read.
 *
 * @param {Session} open
 * @param {Sample[]} all
 * @param {string} stage
 * @param {Report} report
 * @param {() => Promise<boolean>} enough asked before each sample but the first
 * @returns {Promise<number>} how many were run
 */
export async function feed(open, all, stage, report, enough) {
  // The page reads the sample count from there, too.
  const control = loaded().control();
  Atomics.store(control, slot.done, 0);
  let [told, seen, shown] = [0, 0, 0];
  const tell = () => {
    told = performance.now();
    const done = Atomics.load(loaded().control(), slot.done);
    // There may be hundreds of ranges, and samples of a millisecond.
    const due = done > seen && (told - shown > interval || done === all.length);
    if (due) [seen, shown] = [done, told];
    report({ stage, done, of: all.length, unit: 'samples', memory: memory(), ...(due && { ranges: open.rangesSoFar() }) });
  };
  const free = async (/** @type {number} */ limit) => {
    for (;;) {
      const before = Atomics.load(loaded().control(), slot.ended);
      if (open.samplesUnderWay() < limit) return;
      if (performance.now() - told > interval) tell();
      await ended(before);
    }
  };
  const read = (/** @type {number} */ at) => {
    const reading = at < all.length ? loaded().Sample.read(all[at].name, all[at].files) : null;
    reading?.catch(() => {}); // said when it is waited for
    return reading;
  };
  tell();
  let coming = read(0);
  let begun = 0;
  try {
    for (let at = 0; coming; at += 1) {
      const sample = await coming;
      await free(underWay(all[at]));
      if (at > 0 && await enough()) {
        sample.free(); // read and not wanted any more
        break;
      }
      begun = at + 1;
      if (!open.beginSample(sample)) break;
      if (threads === 1) tell();
      coming = read(at + 1);
    }
  } finally {
    await free(1);
  }
  open.settle();
  tell();
  return begun;
}

/**
 * The number of samples like this one that may be queued or running.
 *
 * @param {{ files: NamedFile[] }} sample
 */
function underWay({ files }) {
  const bytes = files.reduce((sum, { blob }) => sum + blob.size, 0);
  return threads > 1 && bytes <= light ? 2 * threads : threads;
}

/**
 * Waits until the counter of ended samples changes from `before`, or for a short time.
 *
 * @param {number} before
 */
function ended(before) {
  /** @type {any} */
  const atomics = Atomics;
  if (atomics.waitAsync) return atomics.waitAsync(loaded().control(), slot.ended, before, interval).value;
  return new Promise((resolve) => setTimeout(resolve, 4));
}
