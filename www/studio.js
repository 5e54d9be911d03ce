// @ts-check
/**
 * What the page knows and what it can do. Views read the signals and call the actions; they hold no state of their own that
 * matters. Everything runs through `octet.js`, so the page can do nothing that a program could not.
 */

import { detect } from './capabilities.js';
import { baseName, isModel, isPicture } from './files.js';
import { bytes, duration, plural } from './format.js';
import { Octet, OctetError } from './octet.js';
import { batch, computed, signal } from './store.js';

/** @import { Decoded, Memory, NamedFile, Progress, Result, SampleRef, CalibrationSummary } from './types.js' */
/** @import { Model } from './octet.js' */

/** @typedef {{ title: string, message: string, next: string, retry?: () => void }} Problem */

/**
 * @typedef {object} Run
 * @property {number} started
 * @property {Progress} progress
 * @property {number | null} samplesStarted when the first sample went in
 * @property {{ at: number, stage: string, memory: Memory }[]} curve
 */

/** @typedef {{ result: Result, calibration: CalibrationSummary, took: number, memory: Memory | null, name: string, settings: string, curve: Run['curve'] }} Done */

/**
 * @typedef {object} Settings
 * @property {'u8' | 'i8'} activations
 * @property {boolean} perChannel
 * @property {number} threads
 * @property {string} preset
 * @property {Record<string, any>} image
 */

export const capabilities = detect();

/** @type {import('./store.js').Signal<{ state: 'starting' | 'ready' | 'failed', message: string }>} */
export const engine = signal({ state: 'starting', message: '' });
/** @type {import('./store.js').Signal<{ name: string, progress: Progress | null } | null>} */
export const opening = signal(/** @type {any} */ (null));
/** @type {import('./store.js').Signal<Model | null>} */
export const model = signal(/** @type {any} */ (null));
/** Counts the times the model's card or missing files changed. */
export const modelChanged = signal(0);
/** @typedef {{ files: NamedFile[], refs: SampleRef[], source: string, labels: Map<string, string> }} Samples `source` and `labels` (by path) are the demo's */
/** @type {Samples} */
const noSamples = { files: [], refs: [], source: '', labels: new Map() };
export const samples = signal(noSamples);
/** @type {import('./store.js').Signal<{ decoded: Decoded | null, failure: string, picture: Blob | null, name: string } | null>} */
export const preview = signal(/** @type {any} */ (null));
/** @type {import('./store.js').Signal<Settings>} */
export const settings = signal({
  activations: /** @type {'u8' | 'i8'} */ ('u8'),
  perChannel: true,
  threads: Math.max(1, capabilities.threads),
  preset: 'imagenet',
  image: {},
});
/** @type {import('./store.js').Signal<Record<string, Record<string, any>>>} */
export const presets = signal({});
/** @type {import('./store.js').Signal<Run | null>} */
export const run = signal(/** @type {any} */ (null));
/** @type {import('./store.js').Signal<Done | null>} */
export const done = signal(/** @type {any} */ (null));
/** @type {import('./store.js').Signal<Problem | null>} */
export const problem = signal(/** @type {any} */ (null));
/** The last sentence for people who listen to the page. */
export const spoken = signal('');
/** @type {import('./store.js').Signal<{ name: string, model: { file: string, bytes: number }, samples: { file: string, label: string }[], settings?: any, source?: string, license?: string } | null>} */
export const demo = signal(/** @type {any} */ (null));

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
  if (preview.value?.failure) return 'The first sample cannot be used yet; see Data.';
  return '';
});

/** @type {Promise<Octet> | null} */
let starting = null;
/** @type {AbortController | null} */
let running = null;
/** @type {AbortController | null} */
let loading = null;
/** What the ranges that the worker holds were made from. */
let calibratedFor = '';
/** @type {CalibrationSummary | null} */
let calibration = null;

/** Starts the worker, once. @returns {Promise<Octet>} */
export function start() {
  starting ??= Octet.start({ threads: settings.peek().threads }).then(
    async (octet) => {
      presets.value = await octet.presets();
      engine.value = { state: 'ready', message: '' };
      return octet;
    },
    (error) => {
      starting = null;
      engine.value = { state: 'failed', message: `The engine could not start: ${error.message}` };
      throw error;
    },
  );
  return starting;
}

/** Finds out whether demo data is served beside the page. */
export async function findDemo() {
  const answer = await fetch(new URL('../demo/manifest.json', import.meta.url)).catch(() => null);
  if (answer?.ok) demo.value = await answer.json().catch(() => null);
}

/** Takes files from anywhere and sorts them: model, its external data, samples. @param {NamedFile[]} files */
export async function take(files) {
  if (files.length === 0) return;
  if (run.peek()) return say('A run is under way; cancel it before adding files.');
  const wanted = new Set(model.peek()?.wanted ?? []);
  const beside = files.filter(({ path }) => wanted.has(path) || wanted.has(baseName(path)));
  const models = files.filter((file) => isModel(file) && !beside.includes(file));
  const rest = files.filter((file) => !beside.includes(file) && !models.includes(file));
  if (beside.length > 0) return attach(beside);
  if (models.length > 0) {
    await open(models[0]);
    const now = model.peek();
    const needed = new Set((now?.wanted ?? []).map(baseName));
    const data = rest.filter(({ path }) => needed.has(baseName(path)));
    if (data.length > 0) await attach(data);
    const left = rest.filter((file) => !data.includes(file));
    if (now && left.length > 0) await addSamples(left);
    return;
  }
  if (!model.peek()) {
    // Whatever this is, opening it says in words why it is no model.
    return open(rest[0]);
  }
  return addSamples(rest);
}

/** @param {NamedFile} file */
export async function open({ path, blob }) {
  const name = baseName(path);
  loading?.abort();
  const mine = (loading = new AbortController());
  const before = model.peek();
  batch(() => {
    problem.value = null;
    opening.value = { name, progress: { stage: 'Reading the file', done: 0, of: blob.size, unit: 'bytes' } };
  });
  say(`Opening ${name}.`);
  try {
    const octet = await start();
    const opened = await octet.open(blob, {
      name,
      signal: mine.signal,
      onProgress: (progress) => {
        if (loading === mine) opening.value = { name, progress };
      },
    });
    before?.close().catch(() => {});
    calibratedFor = '';
    batch(() => {
      model.value = opened;
      modelChanged.value += 1;
      done.value = null;
      opening.value = null;
    });
    say(`${name} is open: ${plural(opened.card.parameters, 'parameter')}.`);
    await look();
  } catch (error) {
    if (loading !== mine) return;
    opening.value = null;
    fail(`${name} could not be opened`, error, 'Choose another file; nothing else was changed.', () => open({ path, blob }));
  } finally {
    if (loading === mine) loading = null;
  }
}

export function cancelOpening() {
  loading?.abort();
}

/** @param {NamedFile[]} files */
async function attach(files) {
  const open = model.peek();
  if (!open) return;
  const wanted = open.wanted;
  const given = files.flatMap((file) => {
    const path = wanted.find((name) => name === file.path) ?? wanted.find((name) => baseName(name) === baseName(file.path));
    return path ? [{ path, blob: file.blob }] : [];
  });
  beside = [...beside.filter((old) => !given.some((file) => file.path === old.path)), ...given];
  const missing = wanted.filter((name) => !beside.some((file) => file.path === name));
  if (missing.length > 0) return say(`Still missing: ${missing.join(', ')}.`);
  try {
    await open.attach(beside);
    say('The model’s data is attached.');
  } catch (error) {
    fail('The model’s data could not be attached', error, 'Choose the files that were saved together with this model.');
  }
  beside = [];
  modelChanged.value += 1;
  await look();
}
/** @type {NamedFile[]} external data given so far, while more is missing */
let beside = [];

/** @param {NamedFile[]} files @param {{ source: string, labels: Map<string, string> }} [about] */
export async function addSamples(files, about = { source: '', labels: new Map() }) {
  const kept = samples.peek().files.filter((old) => !files.some((file) => file.path === old.path));
  const all = [...kept, ...files];
  try {
    const octet = await start();
    const refs = await octet.group(all.map((file) => file.path));
    problem.value = null;
    samples.value = { files: all, refs, ...about };
    say(`${plural(refs.length, 'sample')} ready.`);
    await look();
  } catch (error) {
    fail('These samples cannot be used', error, 'The samples that were there before are kept.');
  }
}

export function clearSamples() {
  samples.value = noSamples;
  preview.value = null;
  say('Samples removed.');
}

/** Each look replaces the one before. */
let looks = 0;

/** Decodes the first sample with the settings of now. */
async function look() {
  const mine = ++looks;
  const open = model.peek();
  const { files, refs } = samples.peek();
  const first = refs[0];
  if (!open || !first || open.wanted.length > 0) {
    preview.value = null;
    return;
  }
  const parts = files.filter((file) => first.parts.includes(file.path));
  const picture = parts.find(isPicture)?.blob ?? null;
  try {
    const decoded = await open.preview(parts, { image: imageSettings() });
    if (mine === looks) preview.value = { decoded, failure: '', picture, name: first.name };
  } catch (error) {
    if (mine !== looks || aborted(error)) return;
    preview.value = { decoded: null, failure: /** @type {Error} */ (error).message, picture, name: first.name };
    say(/** @type {Error} */ (error).message);
  }
}

function imageSettings() {
  const { preset, image } = settings.peek();
  return { ...presets.peek()[preset], ...image };
}

/** @param {Partial<Settings>} change */
export function set(change) {
  settings.value = { ...settings.peek(), ...change };
  if ('preset' in change || 'image' in change) look();
  if ('threads' in change) {
    calibratedFor = '';
    start().then((octet) => (octet.threads = settings.peek().threads), () => {});
  }
}

/** Calibrates where needed, quantizes, and shows what came of it. */
export async function quantize() {
  const open = model.peek();
  if (!open || blocked.peek()) return;
  const mine = (running = new AbortController());
  const { files, refs } = samples.peek();
  const { activations, perChannel } = settings.peek();
  const choice = { activations, perChannel };
  const reading = { image: imageSettings() };
  const source = JSON.stringify([open.card.sha256, reading, refs, files.map((file) => file.blob.size)]);
  const started = performance.now();
  batch(() => {
    problem.value = null;
    done.value = null;
    run.value = { started, progress: { stage: 'Preparing the model' }, samplesStarted: null, curve: [] };
  });
  say('The run has started.');
  /** @param {Progress} progress */
  const onProgress = (progress) => {
    const now = run.peek();
    if (running !== mine || !now) return;
    const at = performance.now() - started;
    const { memory, stage } = progress;
    run.value = {
      ...now,
      progress,
      samplesStarted: now.samplesStarted ?? (progress.unit === 'samples' ? performance.now() : null),
      curve: memory ? [...now.curve, { at, stage, memory }] : now.curve,
    };
  };
  try {
    const { signal } = mine;
    if (calibratedFor !== source || !calibration || !open.calibrated) {
      calibration = await open.calibrate(files, { settings: choice, samples: reading, signal }, onProgress);
      calibratedFor = source;
    }
    const result = await open.quantize(choice, { signal, onProgress });
    const memory = await start().then((octet) => octet.memory());
    const took = performance.now() - started;
    const curve = [...(run.peek()?.curve ?? []), { at: took, stage: 'Done', memory }];
    batch(() => {
      run.value = null;
      done.value = {
        result, took, memory, curve,
        calibration: /** @type {CalibrationSummary} */ (calibration),
        name: open.name,
        settings: JSON.stringify(choice),
      };
    });
    say(`Done in ${duration(took)}: ${bytes(result.summary.bytesBefore)} became ${bytes(result.summary.bytesAfter)}.`);
  } catch (error) {
    run.value = null;
    calibratedFor = '';
    if (aborted(error)) {
      say('The run was cancelled; model, samples and settings are kept.');
    } else {
      fail('The run stopped', error, 'Model, samples and settings are kept.', quantize);
    }
  } finally {
    if (running === mine) running = null;
  }
}

export function cancel() {
  running?.abort();
}

/** Loads the demo's model, samples and settings. */
export async function openDemo() {
  const about = demo.peek();
  if (!about) return;
  const folder = new URL('../demo/', import.meta.url);
  /** @param {string} file */
  const get = async (file) => {
    const answer = await fetch(new URL(file, folder));
    if (!answer.ok) throw new Error(`${file} is not served (${answer.status}).`);
    return answer.blob();
  };
  opening.value = { name: about.name, progress: { stage: 'Fetching the demo from this server' } };
  try {
    const blob = await get(about.model.file);
    const files = await Promise.all(
      about.samples.map(async ({ file }) => ({ path: baseName(file), blob: await get(file) })),
    );
    const preset = about.settings?.preset;
    set({ ...(preset ? { preset } : {}), image: about.settings?.image ?? {} });
    clearSamples();
    await open({ path: baseName(about.model.file), blob });
    if (model.peek()) {
      const labels = new Map(about.samples.map(({ file, label }) => [baseName(file), label]));
      await addSamples(files, { source: `Demo data: ${about.source ?? about.name}`, labels });
    }
  } catch (error) {
    opening.value = null;
    fail('The demo could not be loaded', error, 'Open a model of your own.');
  }
}

/** @param {string} title @param {unknown} error @param {string} next @param {() => void} [retry] */
function fail(title, error, next, retry) {
  if (aborted(error)) return say('Cancelled.');
  const crash = error instanceof OctetError && error.kind === 'crash';
  const message = error instanceof Error ? error.message : String(error);
  problem.value = {
    title,
    message: sentence(crash ? `The engine stopped unexpectedly (${message})` : message),
    next: crash ? `${next} The engine starts again by itself; one thread takes less memory.` : next,
    retry: crash ? retry : undefined,
  };
  say(`${title}. ${message}`);
}

/** Begins with a capital, unless it begins with a name; ends with a stop. @param {string} text */
function sentence(text) {
  const start = /^[a-z]+ /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(start) ? start : `${start}.`;
}

/** @param {unknown} error */
function aborted(error) {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** @param {string} text */
export function say(text) {
  spoken.value = text;
}
