// @ts-check
/** The first sample as the model receives it, the samples that can't be used, and the use of the others. */

import { signal } from '../../library/signals.js';
import { needsSamples, takesSamples } from '../../settings-document.js';
import { randomData, samples } from '../../state/page.js';

/** @import { Decoded, Settings, UnusableSample } from '../../types.js' */
/** @import { Way } from './preprocessings.js' */

/** @type {import('../../library/signals.js').Signal<{ decoded: Decoded | null, failure: string, picture: Blob | null, name: string } | null>} */
export const preview = signal(/** @type {any} */ (null));
/**
 * Samples that can't be used with the current preprocessing, as far as they were checked.
 *
 * @type {import('../../library/signals.js').Signal<UnusableSample[]>}
 */
export const unusable = signal(/** @type {UnusableSample[]} */ ([]));

/** True if the person chose how images are read; nothing else overrules that. */
export const chosenByHand = signal(false);

/**
 * A preprocessing that was tried with the labels. `share`: the sum of the shares that the right
 * classes had.
 *
 * @typedef {{ name: string, right: number, of: number, share: number }} Tried
 */
/**
 * The trial of preprocessings with the labels. `text`: its outcome in words; `taken`: the way that
 * was chosen in place of the one before; `clear`: the labels tell one from another.
 *
 * @type {import('../../library/signals.js').Signal<{ state: 'running' | 'done', text: string, tried: Tried[], taken?: Way, clear?: boolean } | null>}
 */
export const trial = signal(/** @type {any} */ (null));

/**
 * True if a run with these settings uses samples. Schemes that need none ignore random ones, as
 * noise shows nothing of real activations.
 *
 * @param {Settings} document
 */
export function usesSamples(document) {
  const { refs, source } = samples.value;
  return needsSamples(document) || (takesSamples(document) && source !== randomData && refs.length > unusable.value.length);
}
