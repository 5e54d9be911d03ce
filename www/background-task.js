// @ts-check
/**
 * Measuring, beside everything else: the page stays usable meanwhile, and the next edit or run ends it. It is asked to stop, not torn
 * down: the worker goes on to the end of a step, and keeps what it holds.
 */

import { aborted, say } from './messages.js';
import { unlessAborted } from './octet.js';
import { measuring, run } from './state.js';

/** @import { Progress } from './types.js' */

/**
 * Does something that takes a while. What was measured before is stopped.
 *
 * @param {string} stage
 * @param {(signal: AbortSignal, onProgress: (progress: Progress) => void) => Promise<void>} work
 * @returns {Promise<unknown>} what went wrong; `null` where nothing did, or where it was stopped
 */
export async function aside(stage, work) {
  if (run.peek()) return null;
  stopMeasuring();
  const stop = new AbortController();
  const mine = { progress: /** @type {Progress} */ ({ stage }), stop };
  measuring.value = mine;
  say(`${stage}.`);
  try {
    const onProgress = (/** @type {Progress} */ progress) => {
      if (measuring.peek()?.stop === stop) measuring.value = { stop, progress: { ...progress, stage: progress.stage || stage } };
    };
    await unlessAborted(work(stop.signal, onProgress), stop.signal);
    return null;
  } catch (error) {
    return aborted(error) ? null : error;
  } finally {
    if (measuring.peek()?.stop === stop) measuring.value = null;
  }
}

/** Ends what is being measured, if anything is; the result is kept. @returns {boolean} whether anything was */
export function stopMeasuring() {
  const now = measuring.peek();
  if (!now) return false;
  measuring.value = null;
  now.stop.abort();
  return true;
}
