// @ts-check
/**
 * The state of the page. Views read these signals and call actions (`studio.js`, `run.js`,
 * `demo.js`), which alone write them. There is no other state.
 */

import { detect } from './capabilities.js';
import { needsSamples } from './settings-document.js';
import { computed, signal } from './signals.js';

/** @import { Calibration, Comparison, Decoded, Forecast, Memory, Misfit, NamedFile, Progress, QuantizeSettings, Result, Run as Timed, SampleRef, Summary } from './types.js' */
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
 * @property {QuantizeSettings} document what it was made with
 * @property {Run['curve']} curve
 * @property {number} id of `tried`
 * @property {Forecast | null} forecast what was told before it; `null` where nothing was, or no samples were run
 */

/**
 * @typedef {object} Tried one result, without its bytes
 * @property {number} id
 * @property {QuantizeSettings} document
 * @property {Summary} summary
 * @property {number} took
 * @property {Record<string, number>} metrics what was measured of it, by name; empty where nothing was
 * @property {Record<string, Record<string, number>>} [outputs] the same of each output, of which the metrics have that which heads the page
 * @property {Record<string, Record<string, number>>} layers the same of each node; empty where nothing was
 */

/**
 * @typedef {object} Settings
 * @property {QuantizeSettings} document what the quantizer is told
 * @property {number} threads
 * @property {string} preset
 * @property {Record<string, any>} image
 */

export const capabilities = detect();

/** @type {import('./signals.js').Signal<{ state: 'starting' | 'ready' | 'failed', message: string, noThreads: string }>} `noThreads`: why they did not start */
export const engine = signal({ state: 'starting', message: '', noThreads: '' });
/** Capabilities of this browser, corrected if the threads did not start. */
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
 * @property {string[]} characters what the model's scores stand for, where it reads text; empty where it does not, or nobody knows
 */
/** @type {Samples} */
export const noSamples = { files: [], refs: [], source: '', labels: new Map(), names: new Map(), labelSource: '', labelFailure: '', labelFiles: [], skipped: [], characters: [] };
export const samples = signal(noSamples);
/** Description of random samples. */
export const randomData = 'Random demo data: for trying Octet out, not for real use.';
/** @type {import('./signals.js').Signal<{ decoded: Decoded | null, failure: string, picture: Blob | null, name: string } | null>} */
export const preview = signal(/** @type {any} */ (null));
/**
 * Samples that can't be used with the current preprocessing, as far as they were checked.
 *
 * @type {import('./signals.js').Signal<Misfit[]>}
 */
export const misfits = signal(/** @type {Misfit[]} */ ([]));
/** @type {import('./signals.js').Signal<Settings>} */
export const settings = signal({
  document: /** @type {QuantizeSettings} */ ({}),
  threads: Math.max(1, capabilities.threads),
  preset: 'imagenet',
  image: {},
});
/** @type {import('./signals.js').Signal<Record<string, Record<string, any>>>} */
export const presets = signal({});
/** @type {import('./signals.js').Signal<Run | null>} */
export const run = signal(/** @type {any} */ (null));
/**
 * The background task and its cancellation.
 *
 * @type {import('./signals.js').Signal<{ progress: Progress, stop: AbortController } | null>}
 */
export const measuring = signal(/** @type {any} */ (null));
/** @type {import('./signals.js').Signal<Done | null>} */
export const done = signal(/** @type {any} */ (null));
/**
 * The comparison with the float model; `id` is that of the result in `runHistory`.
 *
 * @type {import('./signals.js').Signal<{ id: number, found: Comparison } | null>}
 */
export const comparison = signal(/** @type {any} */ (null));
/**
 * Times of the float model and the result on the first sample, layer by layer.
 *
 * @type {import('./signals.js').Signal<{ id: number, float: Timed, quantized: Timed } | null>}
 */
export const timing = signal(/** @type {any} */ (null));
/**
 * Reasons why the error or the time of a result could not be measured.
 *
 * @type {import('./signals.js').Signal<{ id: number, error: string, time: string }>}
 */
export const unmeasured = signal({ id: 0, error: '', time: '' });
/** The headline output; empty selects the worst. */
export const chosenOutput = signal('');
/**
 * All results of this model and these samples, the newest last.
 *
 * @type {import('./signals.js').Signal<Tried[]>}
 */
export const tried = signal(/** @type {Tried[]} */ ([]));
/**
 * Earlier documents for undo, the newest last.
 *
 * @type {import('./signals.js').Signal<QuantizeSettings[]>}
 */
export const undoable = signal(/** @type {QuantizeSettings[]} */ ([]));
/**
 * Undone documents for redo, the last undone last.
 *
 * @type {import('./signals.js').Signal<QuantizeSettings[]>}
 */
export const redoable = signal(/** @type {QuantizeSettings[]} */ ([]));
/** @typedef {'overview' | 'layers' | 'graph' | 'timeline' | 'compare'} Tab */
export const tab = signal(/** @type {Tab} */ ('overview'));
/** The name of the selected node; empty for none. */
export const selected = signal('');

/**
 * The forecast of a run; `told` is `null` while it is unknown.
 *
 * @type {import('./signals.js').Signal<{ told: Forecast | null, failure: string } | null>}
 */
export const forecast = signal(/** @type {any} */ (null));

/** The reason why Run is disabled; empty if it is enabled. */
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
