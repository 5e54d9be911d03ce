// @ts-check
/**
 * Measuring in the background. The page stays usable, and the next edit or run stops it. The worker
 * is asked to stop and keeps its state; it finishes its current step.
 */

import { unlessAborted } from '../octet.js';
import { aborted, say } from './messages.js';
import { measuring, run } from './page.js';

/** @import { Progress } from '../types.js' */

/**
 * Runs a long task in the background and stops the one before.
 *
 * @param {string} stage
 * @param {(signal: AbortSignal, onProgress: (progress: Progress) => void) => Promise<void>} work
 * @returns {Promise<unknown>} what went wrong; `null` where nothing did, or where it was stopped
 */
export async function inBackground(stage, work) {
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

/**
 * Stops the background task, if there is one; the result is kept.
 *
 * @returns {boolean} whether anything was
 */
export function stopMeasuring() {
  const now = measuring.peek();
  if (!now) return false;
  measuring.value = null;
  now.stop.abort();
  return true;
}
