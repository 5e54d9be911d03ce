// @ts-check
/** Statistics in the worker: files of them in place of samples, and samples that become a file. */

import { feed } from './calibration-worker.js';
import { loaded, memory, samplesOf, session } from './loaded-engine.js';

/** @import { Calibration, SharedStatistics } from './types.js' */
/** @import { Arguments } from './calls.js' */
/** @import { Report } from './loaded-engine.js' */

/** Content of files of statistics together. @param {Arguments<'readStatistics'>} args @returns {Promise<SharedStatistics>} */
export async function readStatistics({ key, statistics, data }) {
  return session(key).readStatistics(statistics, data);
}

/** Calibrates with statistics in place of samples. @param {Arguments<'calibrateByStatistics'>} args @param {Report} report @returns {Promise<Calibration>} */
export async function calibrateByStatistics({ key, statistics, data, settings }, report) {
  const open = session(key);
  report({ stage: 'Merging the statistics', memory: memory() });
  await open.readStatistics(statistics, data);
  const summary = open.calibrateByStatistics(settings);
  return { ...summary, given: summary.samples, tuned: null };
}

/**
 * Runs samples and writes what they showed. It has a session of its own, so that the calibration and
 * the report of the open model stay as they are.
 *
 * @param {Arguments<'observe'>} args
 * @param {Report} report
 * @returns {Promise<Blob>}
 */
export async function observe({ name, blob, files, source, samples, settings, statistics, data }, report) {
  const all = samplesOf(files);
  const quiet = () => {};
  loaded().resetControl();
  report({ stage: 'Preparing the model', memory: memory() });
  const open = await loaded().Session.open(name, blob, quiet);
  try {
    if (data.length > 0) await open.attach(data, quiet);
    if (statistics.length > 0) await open.readStatistics(statistics, data);
    const left = new Set(open.beginObserving(source, all.map((sample) => sample.name), samples, settings));
    await feed(open, all.filter((_, place) => !left.has(place)), 'Observing', report, async () => false);
    return new Blob([/** @type {BlobPart} */ (await open.finishObserving(data))]);
  } finally {
    open.free();
  }
}
