// @ts-check
/** Ranges of other tools in the worker: in place of a calibration, and written from a result. */

import { memory, session } from './loaded-engine.js';

/** @import { Calibration, RangeFileSummary, WrittenRanges } from './types.js' */
/** @import { Arguments } from './calls.js' */
/** @import { Report } from './loaded-engine.js' */

/** Content of a file of ranges. @param {Arguments<'readRanges'>} args @returns {Promise<RangeFileSummary>} */
export async function readRanges({ key, file }) {
  return session(key).readRanges([file]);
}

/** Takes the ranges of a file in place of a calibration. @param {Arguments<'calibrateByRanges'>} args @param {Report} report @returns {Promise<Calibration>} */
export async function calibrateByRanges({ key, file }, report) {
  report({ stage: 'Taking the ranges', memory: memory() });
  const summary = await session(key).calibrateByRanges([file]);
  return { ...summary, given: summary.samples, tuned: null };
}

/** A file of a result's ranges. @param {Arguments<'writeRanges'>} args @returns {Promise<WrittenRanges>} */
export async function writeRanges({ key, format, ranges, quantized }) {
  const { bytes, notes } = await session(key).writeRanges(format, ranges, [{ path: 'the result', blob: quantized }]);
  return { file: new Blob([bytes]), notes };
}
