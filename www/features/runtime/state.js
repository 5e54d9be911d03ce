// @ts-check
/** The check in the real runtime: its rows, the node that was found, and what stands in the way. */

import { computed, effect, signal } from '../../library/signals.js';
import { done, model, run, samples } from '../../state/page.js';

/** @import { Culprit } from './bisect.js' */
/** @import { Placement } from './placement.js' */

/**
 * An output of a model in the runtime. `octet`: decibels between it and the same model in Octet;
 * `float`: between the quantized and the float model in this runtime; `same`: share of equal answers;
 * `parts`: it differs from Octet by more than rounding of the output; `rounded`: then the search found
 * that no node computes anything else, so rounding adds up on the way.
 *
 * @typedef {{ name: string, octet: number, float: number | null, same: number | null, parts: boolean, rounded: boolean }} Output
 */

/**
 * A model in the runtime. `error` in place of all else where it does not load or run. `placement`: of
 * its nodes, with a provider that may leave some to the processor; `null` where it is not known.
 *
 * @typedef {{ error: string, loadTime: number, times: [number, number, number] | null, outputs: Output[], placement: Placement | null }} Tried
 */

/**
 * A row of the matrix. `why`: the reason why it was not tried; `note`: what a reader has to know.
 *
 * @typedef {object} Row
 * @property {string} provider
 * @property {string} title
 * @property {string} why
 * @property {string} version
 * @property {number} threads
 * @property {string} note
 * @property {Tried | null} float
 * @property {Tried | null} quantized
 */

/**
 * The last check, of the result with this id. `whole` once all rows are there.
 *
 * @typedef {{ id: number, name: string, samples: number, runs: number, rows: Row[], culprit: { row: string, output: string, found: Culprit | null, failure: string, file: Blob | null } | null, whole: boolean }} Check
 */

/** The place of a model’s outputs beside those of Octet. @param {Tried | null} tried @returns {'alike' | 'rounded' | 'differs'} */
export function verdict(tried) {
  const apart = tried?.outputs.filter(({ parts }) => parts) ?? [];
  if (apart.length === 0) return 'alike';
  return apart.every(({ rounded }) => rounded) ? 'rounded' : 'differs';
}

/** @type {import('../../library/signals.js').Signal<Check | null>} */
export const check = signal(/** @type {any} */ (null));
/** Names of the providers that a check tries. */
export const wanted = signal(['wasm']);
/** True while a check is under way. */
export const checking = signal(false);
/** Reason why the last check has no result; empty otherwise. */
export const failure = signal('');

effect(() => {
  void done.value;
  check.value = null;
  failure.value = '';
});

/** Reason why no check can start; empty if one can. */
export const blocked = computed(() => {
  if (!model.value) return 'Open a model first.';
  if (!done.value) return 'Quantize first: the check runs the float model and the result.';
  if (samples.value.refs.length === 0) return 'Add samples: the check runs both models on them.';
  if (run.value) return 'A run is in progress.';
  return '';
});
