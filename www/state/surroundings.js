// @ts-check
/** The surroundings of the studio: on the page, in a frame of another page, or on the page of a model hub. */

import { signal } from '../library/signals.js';
import { model, run } from './page.js';

/** @param {string} name of a meta element */
const stated = (name) => globalThis.document?.querySelector(`meta[name=${name}]`)?.getAttribute('content') ?? '';

/** True in `embed.html`, the page for frames. */
export const embedded = stated('octet-page') === 'embed';

/** The address of the model hub that this page may read; empty on the other pages. */
export const hubAddress = stated('octet-hub');

/** True if a newer version of the page waits until no tab has this one. */
export const newerWaits = signal(false);

/** The model that was open when all stored data was deleted; nothing of it is stored again. @type {import('../library/signals.js').Signal<object | null>} */
export const forgotten = signal(/** @type {any} */ (null));

/** True if files and settings are those of the page around this one. */
export const readOnly = signal(false);

/** True if no setting can be changed: in a read-only studio, and during a calibration. */
export const settingsLocked = () => readOnly.value || (run.value !== null && !run.value.quick);

/** The names of the panels that are shown; `null` for all. @type {import('../library/signals.js').Signal<string[] | null>} */
export const shownPanels = signal(/** @type {any} */ (null));

/**
 * The addresses that a model came from, and its file.
 *
 * @type {import('../library/signals.js').Signal<{ file: Blob, model: string, samples: string[], settings: string } | null>}
 */
export const link = signal(/** @type {any} */ (null));

/** The link of the open model; `null` if it came otherwise. A function, as a computed signal may be a step behind its readers. */
export const linkOfModel = () => (link.value && model.value?.files[0]?.blob === link.value.file ? link.value : null);
