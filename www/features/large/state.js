// @ts-check
/** The choices for a model that is converted piece by piece, and the state of its conversion. */

import { chunk } from '../../streamed-model.js';
import { computed, signal } from '../../library/signals.js';
import { settings } from '../../state/page.js';

/** @import { BlockSettings, Place, Progress, Settings, StreamedOutcome } from '../../types.js' */
/** @import { PlannedStream } from '../../calls.js' */

/** @typedef {import('../../library/signals.js').Signal<{ told: PlannedStream | null, failure: string }>} PlanSignal */

const { scheme, blocks } = settings.peek().document;

/** The settings of the blocks, without those that are as by default. */
export const chosen = signal(/** @type {Partial<BlockSettings>} */ (scheme === 'blocks' ? blocks ?? {} : {}));

/** Forms of the result by the names of transformers.js. @typedef {'q4' | 'q4f16' | 'fp16' | 'quantized' | 'weights'} ResultForm */

/** The schemes of the forms without blocks. @type {Partial<Record<ResultForm, Settings['scheme']>>} */
const schemes = { fp16: 'float16', quantized: 'dynamic', weights: 'weights' };

/** The form that the settings of the page name. */
const initial = /** @type {ResultForm | undefined} */ (Object.entries(schemes).find(([, of]) => of === scheme)?.[0]);

/** The form of the result. */
export const form = signal(/** @type {ResultForm} */ (initial ?? 'q4'));

/** True for the forms with weights in blocks. */
export const inBlocks = computed(() => !schemes[form.value]);

/** A size in the page's address, in units of 2²⁰ bytes as on the command line. */
const given = Number(new URLSearchParams(location.search).get('pieces'));

/** Choices of the greatest size of a file of weights, in bytes. */
export const limits = [...(given > 0 ? [given * 2 ** 20] : []), chunk, chunk / 2, Number.MAX_SAFE_INTEGER];

/** The greatest size of a file of weights, in bytes. */
export const limit = signal(limits[0]);

/** The place of the result. */
export const place = signal(/** @type {Place} */ ({ folder: null }));

/** @type {{ readonly value: Settings, peek(): Settings }} */
export const document = computed(() => {
  const of = schemes[form.value];
  if (of) return { scheme: of };
  return { scheme: 'blocks', blocks: form.value === 'q4f16' ? { ...chosen.value, activations: 'float16' } : chosen.value };
});

/** The plan of these choices; without one and without a failure it is being made. @type {PlanSignal} */
export const planned = signal(/** @type {any} */ ({ told: null, failure: '' }));

/**
 * The conversion that runs. `base`: bytes that an earlier one has read.
 *
 * @type {import('../../library/signals.js').Signal<{ started: number, base: number, progress: Progress } | null>}
 */
export const job = signal(/** @type {any} */ (null));

/**
 * The files that were made, the model first. `blob`: where they are in this browser's storage.
 * `outcome`: of a conversion of this visit.
 *
 * @type {import('../../library/signals.js').Signal<{ files: { name: string, bytes: number, blob: Blob | null }[], took: number | null, peak: number, folder: string, outcome: StreamedOutcome | null } | null>}
 */
export const result = signal(/** @type {any} */ (null));

/** The phase of the work. */
export const stage = computed(() => (job.value ? 'running' : result.value ? 'done' : 'ready'));

/** True while this browser is removing what a conversion made. */
export const removing = signal(false);
