// @ts-check
/**
 * What the page knows. Views read these signals and call actions (`studio.js`, `run.js`, `demo.js`), which alone write them; no other
 * state in the page matters.
 */

import { detect } from './capabilities.js';
import { needsSamples } from './settings-document.js';
import { computed, signal } from './signals.js';

/** @import { Calibration, Comparison, Decoded, Forecast, Memory, UnusableSample, NamedFile, Progress, Settings, Result, Run as Timed, SampleRef, QuantizationSummary } from './types.js' */
/** @import { Model } from './octet.js' */

/**
 * @typedef {object} Run
 * @property {number} started
 * @property {Progress} progress
 * @property {number | null} samplesStarted when the first sample of this stage went in
 * @property {{ at: number, stage: string, memory: Memory, done?: number }[]} curve
 * @property {boolean} quick whether only the settings changed: the result before it stays on the page until the next one is there
 */

/**
 * @typedef {object} Done
 * @property {Omit<Result, 'model'>} result
 * @property {Calibration | null} calibration `null` where the scheme needs none
 * @property {number} took
 * @property {Memory | null} memory
 * @property {string} name
 * @property {Settings} document what it was made with
 * @property {Run['curve']} curve
 * @property {number} id of `tried`
 * @property {Forecast | null} forecast what was told before it; `null` where nothing was, or no samples were run
 */

/**
 * @typedef {object} Tried one result, without its bytes
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
 */

export const capabilities = detect();

/** @type {import('./signals.js').Signal<{ state: 'starting' | 'ready' | 'failed', message: string, noThreads: string }>} `noThreads`: why they did not start */
export const engine = signal({ state: 'starting', message: '', noThreads: '' });
/** What this browser can do; where the threads did not start, what it promised of them no longer holds. */
export const abilities = computed(() => {
  const { noThreads } = engine.value;
  if (!noThreads) return capabilities.list;
  const why = `The worker threads did not start (${noThreads}), so everything runs on one core. Results are the same, only slower. To try again, set Threads in the settings, or reload the page.`;
  return [...capabilities.list.slice(0, -1), { name: '1 thread', has: false, why }];
});
/** @type {import('./signals.js').Signal<{ name: string, progress: Progress | null } | null>} */
export const opening = signal(/** @type {any} */ (null));
/** @type {import('./signals.js').Signal<Model | null>} */
export const model = signal(/** @type {any} */ (null));
/** Counts the times the model's card or missing files changed. */
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
 * @property {string[]} characters what the model's scores stand for, where it reads text; empty where it does not, or nobody knows
 */
/** @type {Samples} */
export const noSamples = { files: [], refs: [], source: '', labels: new Map(), names: new Map(), labelSource: '', labelFailure: '', labelFiles: [], skipped: [], characters: [] };
export const samples = signal(noSamples);
/** The source of samples that are random. */
export const randomData = 'Random demo data: for trying Octet out, not for real use.';
/** @type {import('./signals.js').Signal<{ decoded: Decoded | null, failure: string, picture: Blob | null, name: string } | null>} */
export const preview = signal(/** @type {any} */ (null));
/** The samples that can't be used as they are read now, as far as they were looked at. @type {import('./signals.js').Signal<UnusableSample[]>} */
export const misfits = signal(/** @type {UnusableSample[]} */ ([]));
/** @type {import('./signals.js').Signal<PageSettings>} */
export const settings = signal({
  document: /** @type {Settings} */ ({}),
  threads: Math.max(1, capabilities.threads),
  preset: 'imagenet',
  image: {},
});
/** @type {import('./signals.js').Signal<Record<string, Record<string, any>>>} */
export const presets = signal({});
/** @type {import('./signals.js').Signal<Run | null>} */
export const run = signal(/** @type {any} */ (null));
/** What is being measured beside everything else, and its end. @type {import('./signals.js').Signal<{ progress: Progress, stop: AbortController } | null>} */
export const measuring = signal(/** @type {any} */ (null));
/** @type {import('./signals.js').Signal<Done | null>} */
export const done = signal(/** @type {any} */ (null));
/** The result held against the float model; `id` says which result of `tried`. @type {import('./signals.js').Signal<{ id: number, found: Comparison } | null>} */
export const comparison = signal(/** @type {any} */ (null));
/** How long the float model and the result take on the first sample, layer by layer. @type {import('./signals.js').Signal<{ id: number, float: Timed, quantized: Timed } | null>} */
export const timing = signal(/** @type {any} */ (null));
/** What could not be measured of a result, and why: its error, its time. @type {import('./signals.js').Signal<{ id: number, error: string, time: string }>} */
export const unmeasured = signal({ id: 0, error: '', time: '' });
/** The output that heads the page; empty for the one that is worst off. */
export const chosenOutput = signal('');
/** What was tried with this model and these samples, the newest last. @type {import('./signals.js').Signal<Tried[]>} */
export const tried = signal(/** @type {Tried[]} */ ([]));
/** The documents before this one, the newest last. @type {import('./signals.js').Signal<Settings[]>} */
export const undoable = signal(/** @type {Settings[]} */ ([]));
/** Those that were undone, the last undone last. @type {import('./signals.js').Signal<Settings[]>} */
export const redoable = signal(/** @type {Settings[]} */ ([]));
/** @typedef {'overview' | 'layers' | 'graph' | 'timeline' | 'compare'} Tab */
export const tab = signal(/** @type {Tab} */ ('overview'));
/** The name of the node that is looked at; empty for none. */
export const selected = signal('');

/** What a run will take; `told` is `null` while it is not known. @type {import('./signals.js').Signal<{ told: Forecast | null, failure: string } | null>} */
export const forecast = signal(/** @type {any} */ (null));

/** Why Run is off, in words; empty where it is on. */
export const blocked = computed(() => {
  modelChanged.value;
  if (run.value) return 'A run is in progress.';
  if (engine.value.state === 'failed') return engine.value.message;
  const open = model.value;
  if (opening.value || !open) return opening.value ? 'The model is still being read.' : 'Open a model first.';
  if (open.wanted.length > 0) return `Add the model’s external data first: ${open.wanted.join(', ')}.`;
  if (open.card.alreadyQuantized) return 'This model is already quantized; open the float model it was made from.';
  if (!needsSamples(settings.value.document)) return '';
  if (samples.value.refs.length === 0) return 'Add at least one sample: calibration needs it to measure ranges.';
  if (forecast.value?.told?.refusal) return forecast.value.told.refusal;
  const [bad] = misfits.value;
  if (bad && misfits.value.length >= samples.value.refs.length) return `None of the samples can be used with the current preprocessing. ${bad.sample}: ${bad.reason}${/[.!?]$/.test(bad.reason) ? '' : '.'}`;
  return '';
});
