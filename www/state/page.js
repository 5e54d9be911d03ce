// @ts-check
/**
 * The state that several panels share. Views read these signals and call actions, such as those of
 * `features/model/open.js`, which alone write them. A panel's own state is in its folder.
 */

import { detect } from '../capabilities.js';
import { computed, signal } from '../library/signals.js';

/** @import { Calibration, Comparison, Forecast, LayerReport, Memory, NamedFile, Progress, RangeFileSummary, Settings, Result, Run as Timed, SampleAnswer, SampleRef, QuantizationSummary, SharedStatistics, TextSettings } from '../types.js' */
/** @import { Model } from '../octet.js' */
/** @import { StreamedModel } from '../streamed-model.js' */

/**
 * @typedef {object} Run
 * @property {number} started
 * @property {Progress} progress
 * @property {number | null} samplesStarted when the first sample of this stage went in
 * @property {{ at: number, stage: string, memory: Memory, done?: number }[]} curve
 * @property {LayerReport[]} learned layers whose constants were learned so far
 * @property {boolean} quick whether only the settings changed: the result before it stays on the page until the next one is there
 */

/**
 * @typedef {object} Done
 * @property {Omit<Result, 'model' | 'report'>} result
 * @property {Calibration | null} calibration `null` where the scheme needs none
 * @property {number} took
 * @property {Memory | null} memory
 * @property {string} name
 * @property {Settings} document what it was made with
 * @property {Run['curve']} curve
 * @property {number} id of `runHistory`
 * @property {Forecast | null} forecast what was told before it; `null` where nothing was, or no samples were run
 */

/**
 * @typedef {object} HistoryEntry one result, without its bytes
 * @property {number} id
 * @property {Settings} document
 * @property {QuantizationSummary} summary
 * @property {number} took
 * @property {Record<string, number>} metrics what was measured of it, by name; empty where nothing was
 * @property {Record<string, Record<string, number>>} [outputs] the same of each output, of which the metrics have that which heads the page
 * @property {Record<string, Record<string, number>>} layers the same of each node; empty where nothing was
 */

/**
 * @typedef {object} PageSettings
 * @property {Settings} document what the quantizer is told
 * @property {number} threads
 * @property {string} preset
 * @property {Record<string, any>} image
 * @property {number} [rate] samples of sound a second, in place of those that are proposed
 */

export const capabilities = detect();

/** @type {import('../library/signals.js').Signal<{ state: 'starting' | 'ready' | 'failed', message: string, noThreads: string }>} `noThreads`: why they did not start */
export const engine = signal({ state: 'starting', message: '', noThreads: '' });
/** Capabilities of this browser, corrected if the threads did not start. */
export const abilities = computed(() => {
  const { noThreads } = engine.value;
  if (!noThreads) return capabilities.list;
  const why = `The worker threads did not start (${noThreads}), so everything runs on one core. Results are the same, only slower. To try again, set Threads in the settings, or reload the page.`;
  return [...capabilities.list.slice(0, -1), { name: '1 thread', has: false, why }];
});
/** @type {import('../library/signals.js').Signal<{ name: string, progress: Progress | null } | null>} */
export const opening = signal(/** @type {any} */ (null));
/** @type {import('../library/signals.js').Signal<Model | null>} */
export const model = signal(/** @type {any} */ (null));
/**
 * A model that is converted piece by piece; then `model` is `null`. `files`: those that were given
 * with it; `add`: takes more.
 *
 * @type {import('../library/signals.js').Signal<{ model: StreamedModel, files: NamedFile[], add: (files: NamedFile[]) => Promise<void> } | null>}
 */
export const large = signal(/** @type {any} */ (null));
/** True while that model is being converted. */
export const converting = signal(false);
/** Counts changes of the model's summary or its missing files. */
export const modelChanged = signal(0);
/**
 * @typedef {object} Samples
 * @property {NamedFile[]} files
 * @property {SampleRef[]} refs
 * @property {string} source the demo's, or says that they are random
 * @property {Map<string, string>} labels the number of each sample's class, by its name
 * @property {Map<string, string>} names what classes are called, by their number
 * @property {string} labelSource where the labels are from
 * @property {string} labelFailure why labels that were given are not used
 * @property {NamedFile[]} labelFiles what they were read from
 * @property {{ sample: string, reason: string, files: NamedFile[] }[]} skipped those that are left out, each with its reason; they can be taken back
 * @property {NamedFile[]} textFiles texts and their tokenizer, from which samples are made
 * @property {string[]} textNotes sentences on texts that wait, are left out or cut
 * @property {string[]} characters what the model's scores stand for, where it reads text; empty where it does not, or nobody knows
 */
/** @type {Samples} */
export const noSamples = { files: [], refs: [], source: '', labels: new Map(), names: new Map(), labelSource: '', labelFailure: '', labelFiles: [], textFiles: [], textNotes: [], skipped: [], characters: [] };
export const samples = signal(noSamples);
/** Data that came before the model. @type {import('../library/signals.js').Signal<NamedFile[]>} */
export const waiting = signal(/** @type {NamedFile[]} */ ([]));
/**
 * Statistics of other people's samples, from which the ranges follow in place of the samples.
 *
 * @type {import('../library/signals.js').Signal<{ files: NamedFile[], summary: SharedStatistics } | null>}
 */
export const statistics = signal(/** @type {any} */ (null));
/**
 * Ranges of another tool, in place of a calibration; one file.
 *
 * @type {import('../library/signals.js').Signal<{ files: NamedFile[], summary: RangeFileSummary } | null>}
 */
export const ranges = signal(/** @type {any} */ (null));
/** Description of random samples. */
export const randomData = 'Random demo data: for trying Octet out, not for real use.';
/** @type {import('../library/signals.js').Signal<PageSettings>} */
export const settings = signal({
  document: /** @type {Settings} */ ({}),
  threads: Math.max(1, capabilities.threads),
  preset: 'imagenet',
  image: {},
});
/** Settings of texts as samples; without keys as by default. @type {import('../library/signals.js').Signal<TextSettings>} */
export const textSettings = signal(/** @type {TextSettings} */ ({}));
/** @type {import('../library/signals.js').Signal<Record<string, Record<string, any>>>} */
export const presets = signal({});
/** @type {import('../library/signals.js').Signal<Run | null>} */
export const run = signal(/** @type {any} */ (null));
/**
 * The background task and its cancellation.
 *
 * @type {import('../library/signals.js').Signal<{ progress: Progress, stop: AbortController } | null>}
 */
export const measuring = signal(/** @type {any} */ (null));
/** @type {import('../library/signals.js').Signal<Done | null>} */
export const done = signal(/** @type {any} */ (null));
/**
 * The report of the result. It is apart from `done`, as a comparison adds to it while the result
 * stays on the page.
 */
export const report = signal('');
/**
 * The comparison with the float model, with what both models answer; `id` is that of the result in
 * `runHistory`. It is `whole` once the layers are compared, too.
 *
 * @type {import('../library/signals.js').Signal<{ id: number, found: Comparison & { answers: SampleAnswer[] }, whole: boolean } | null>}
 */
export const comparison = signal(/** @type {any} */ (null));
/**
 * Times of the float model and the result on the first sample, layer by layer.
 *
 * @type {import('../library/signals.js').Signal<{ id: number, float: Timed, quantized: Timed } | null>}
 */
export const timing = signal(/** @type {any} */ (null));
/**
 * All results of this model and these samples, the newest last.
 *
 * @type {import('../library/signals.js').Signal<HistoryEntry[]>}
 */
export const runHistory = signal(/** @type {HistoryEntry[]} */ ([]));
/** The name of the open tab; `features/list.js` has all of them. */
export const tab = signal('overview');
/** The name of the selected node; empty for none. */
export const selected = signal('');
/** The phase of the work: `ready`, `running` or `done`. A quick run stays in its phase. */
export const phase = computed(() => (run.value && !run.value.quick ? 'running' : done.value ? 'done' : 'ready'));

/** The current preprocessing: the preset with the user's changes. */
export function imageSettings() {
  const { preset, image } = settings.peek();
  return { ...presets.peek()[preset], ...image };
}

/** The current reading of samples. */
export function sampleSettings() {
  return { image: imageSettings(), audio: { rate: settings.peek().rate ?? model.peek()?.card.audio?.rate ?? 16000 } };
}
