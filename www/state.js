// @ts-check
/**
 * What the page knows. Views read these signals and call actions (`studio.js`, `run.js`, `demo.js`), which alone write them; no other
 * state in the page matters.
 */

import { detect } from './capabilities.js';
import { computed, signal } from './signals.js';

/** @import { CalibrationSummary, Decoded, Memory, NamedFile, Progress, QuantizeSettings, Result, SampleRef } from './types.js' */
/** @import { Model } from './octet.js' */

/**
 * @typedef {object} Run
 * @property {number} started
 * @property {Progress} progress
 * @property {number | null} samplesStarted when the first sample of this stage went in
 * @property {{ at: number, stage: string, memory: Memory }[]} curve
 */

/** @typedef {{ result: Result, calibration: CalibrationSummary, took: number, memory: Memory | null, name: string, settings: string, curve: Run['curve'] }} Done */

/**
 * @typedef {object} Settings
 * @property {'u8' | 'i8'} activations
 * @property {boolean} perChannel
 * @property {string} method
 * @property {boolean} guard
 * @property {number} threads
 * @property {string} preset
 * @property {Record<string, any>} image
 */

export const capabilities = detect();

/** @type {import('./signals.js').Signal<{ state: 'starting' | 'ready' | 'failed', message: string, noThreads: string }>} `noThreads`: why they did not start */
export const engine = signal({ state: 'starting', message: '', noThreads: '' });
/** What this browser can do; where the threads did not start, what it promised of them no longer holds. */
export const abilities = computed(() => {
  const { noThreads } = engine.value;
  if (!noThreads) return capabilities.list;
  const why = `The threads of this browser did not start (${noThreads}), so everything runs on one core. Results are the same, only slower. To try again, set Threads in the settings, or reload the page.`;
  return [...capabilities.list.slice(0, -1), { name: '1 thread', has: false, why }];
});
/** @type {import('./signals.js').Signal<{ name: string, progress: Progress | null } | null>} */
export const opening = signal(/** @type {any} */ (null));
/** @type {import('./signals.js').Signal<Model | null>} */
export const model = signal(/** @type {any} */ (null));
/** Counts the times the model's card or missing files changed. */
export const modelChanged = signal(0);
/** @typedef {{ files: NamedFile[], refs: SampleRef[], source: string, labels: Map<string, string> }} Samples `source` and `labels` (by path) are the demo's, and say what is random */
/** @type {Samples} */
export const noSamples = { files: [], refs: [], source: '', labels: new Map() };
export const samples = signal(noSamples);
/** The source of samples that are random. */
export const randomData = 'Random demo data: good to try Octet out, worth nothing for real use.';
/** @type {import('./signals.js').Signal<{ decoded: Decoded | null, failure: string, picture: Blob | null, name: string } | null>} */
export const preview = signal(/** @type {any} */ (null));
/** @type {import('./signals.js').Signal<Settings>} */
export const settings = signal({
  activations: /** @type {'u8' | 'i8'} */ ('u8'),
  perChannel: true,
  method: 'minmax',
  guard: true,
  threads: Math.max(1, capabilities.threads),
  preset: 'imagenet',
  image: {},
});
/** The settings as the quantizer reads them. @returns {QuantizeSettings} */
export function quantizeSettings() {
  const { activations, perChannel, method, guard } = settings.value;
  return { method, activations: { type: activations }, weights: { per_channel: perChannel }, guard };
}
/** @type {import('./signals.js').Signal<Record<string, Record<string, any>>>} */
export const presets = signal({});
/** @type {import('./signals.js').Signal<Run | null>} */
export const run = signal(/** @type {any} */ (null));
/** @type {import('./signals.js').Signal<Done | null>} */
export const done = signal(/** @type {any} */ (null));

/** Why Run is off, in words; empty where it is on. */
export const blocked = computed(() => {
  modelChanged.value;
  if (run.value) return 'A run is under way.';
  if (engine.value.state === 'failed') return engine.value.message;
  const open = model.value;
  if (opening.value || !open) return opening.value ? 'The model is still being read.' : 'Open a model first.';
  if (open.wanted.length > 0) return `Add the model’s data first: ${open.wanted.join(', ')}.`;
  if (open.card.alreadyQuantized) return 'This model is quantized already; open the float model it was made from.';
  if (samples.value.refs.length === 0) return 'Add at least one sample, so that the ranges can be seen.';
  if (preview.value?.failure) return 'The first sample cannot be used; what is wrong with it is said below its name. Mend the file and add it again, or remove all and add others.';
  return '';
});
