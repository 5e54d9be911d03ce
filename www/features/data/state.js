// @ts-check
/** The first sample as the model receives it, and the samples that can't be used. */

import { signal } from '../../library/signals.js';

/** @import { Decoded, UnusableSample } from '../../types.js' */

/** @type {import('../../library/signals.js').Signal<{ decoded: Decoded | null, failure: string, picture: Blob | null, name: string } | null>} */
export const preview = signal(/** @type {any} */ (null));
/**
 * Samples that can't be used with the current preprocessing, as far as they were checked.
 *
 * @type {import('../../library/signals.js').Signal<UnusableSample[]>}
 */
export const unusable = signal(/** @type {UnusableSample[]} */ ([]));
