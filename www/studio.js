// @ts-check
/**
 * Actions on model, samples and settings. All of them go through `octet.js`, so a program can do
 * whatever the page can.
 */

import { stopMeasuring } from './background-task.js';
import { baseName, isModel } from './files.js';
import { plural } from './format.js';
import { classesOf, labelled, mayBeLabels } from './labels.js';
import { look } from './sample-check.js';
import { fail, problem, say } from './messages.js';
import { Octet, unlessAborted } from './octet.js';
import { asChosen } from './image-settings.js';
import { batch } from './signals.js';
import {
  chosenOutput, comparison, done, engine, misfits, model, modelChanged, noSamples, opening, presets, preview, randomData, redoable, run, samples, selected, settings, timing,
  tried, undoable, unmeasured,
} from './state.js';

/** @import { NamedFile, SampleRef } from './types.js' */
/** @import { PageSettings, Samples } from './state.js' */

/** @type {Promise<Octet> | null} */
let starting = null;
/** @type {AbortController | null} */
let loading = null;

/** Starts the worker once. @returns {Promise<Octet>} */
export function start() {
  starting ??= Octet.start({ threads: settings.peek().threads, onOneThread }).then(
    async (octet) => {
      presets.value = await octet.presets();
      engine.value = { ...engine.peek(), state: 'ready', message: '' };
      return octet;
    },
    (error) => {
      starting = null;
      engine.value = { ...engine.peek(), state: 'failed', message: `The engine could not start: ${error.message}` };
      throw error;
    },
  );
  return starting;
}

/** @param {string} why */
function onOneThread(why) {
  batch(() => {
    engine.value = { ...engine.peek(), noThreads: why };
    settings.value = { ...settings.peek(), threads: 1 };
  });
  say('The worker threads did not start; everything runs on one thread.');
}

/** Sorts files from any source: model, external data, samples. @param {NamedFile[]} files */
export async function take(files) {
  if (files.length === 0) return;
  if (run.peek()) return say('A run is in progress; cancel it before adding files.');
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
    // Opening an unknown file fails with an explanation.
    return open(rest[0]);
  }
  return addSamples(rest);
}

/** @param {NamedFile} file */
export async function open({ path, blob }) {
  const name = baseName(path);
  loading?.abort();
  stopMeasuring();
  const mine = (loading = new AbortController());
  const before = model.peek();
  batch(() => {
    problem.value = null;
    opening.value = { name, progress: { stage: 'Reading the file', done: 0, of: blob.size, unit: 'bytes' } };
  });
  say(`Opening ${name}.`);
  try {
    const octet = await unlessAborted(start(), mine.signal);
    const opened = await octet.open(blob, {
      name,
      signal: mine.signal,
      onProgress: (progress) => {
        if (loading === mine) opening.value = { name, progress };
      },
    });
    before?.close().catch(() => {});
    batch(() => {
      model.value = opened;
      modelChanged.value += 1;
      const proposed = opened.card.pictures;
      if (proposed) settings.value = { ...settings.peek(), ...asChosen(proposed) };
      done.value = null;
      opening.value = null;
      forget();
    });
    say(`${name} is open: ${plural(opened.card.parameters, 'parameter')}.`);
    await relabel();
    await look();
  } catch (error) {
    if (loading !== mine) return;
    opening.value = null;
    fail(`${name} could not be opened`, error, 'Choose another file; nothing else was changed.', () => open({ path, blob }));
  } finally {
    if (loading === mine) loading = null;
  }
}

/**
 * Clears the run history and the settings by node and tensor, which don't apply to another model.
 */
function forget() {
  tried.value = [];
  comparison.value = null;
  timing.value = null;
  undoable.value = [];
  redoable.value = [];
  chosenOutput.value = '';
  unmeasured.value = { id: 0, error: '', time: '' };
  selected.value = '';
  const { by_node, by_name, tensors, float, ...document } = settings.peek().document;
  if (by_node || by_name || tensors || float) settings.value = { ...settings.peek(), document };
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
    say('The model’s external data is attached.');
  } catch (error) {
    fail('The model’s external data could not be attached', error, 'Choose the files that were saved together with this model.');
  }
  beside = [];
  modelChanged.value += 1;
  await look();
}
/** @type {NamedFile[]} external data given so far, while more is missing */
let beside = [];

/**
 * Adds samples, and files with their labels.
 *
 * @param {NamedFile[]} files
 * @param {Partial<Pick<Samples, 'source' | 'labels' | 'names' | 'characters'>>} [about] what a demo says of its own
 */
export async function addSamples(files, about) {
  const before = samples.peek();
  const replaced = (/** @type {NamedFile} */ old) => files.some((file) => file.path === old.path);
  const all = [...before.files.filter((old) => !replaced(old)), ...files];
  const lists = [...before.labelFiles.filter((old) => !replaced(old)), ...files.filter(mayBeLabels)];
  try {
    const octet = await start();
    const others = all.filter((file) => !lists.includes(file));
    // Files that turn out not to hold labels are refused with a message.
    const refs = await octet.group((others.length > 0 ? others : all).map((file) => file.path));
    const read = await labelsFrom(refs, lists);
    const unread = lists.filter((file) => !read.used.includes(file.path));
    if (unread.length > 0) await octet.group([...others, ...unread].map((file) => file.path));
    problem.value = null;
    stopMeasuring();
    samples.value = {
      ...noSamples, files: others, refs, skipped: before.skipped.filter((one) => !one.files.some(replaced)), labelFiles: lists, labelSource: read.source, labelFailure: read.failure, labels: read.labels, names: read.names, ...about,
    };
    say(`${plural(refs.length, 'sample')} ready.${read.failure || read.source ? ` ${read.failure || read.source}` : ''}`);
    await look();
  } catch (error) {
    fail('These samples cannot be used', error, 'The previous samples are kept.');
  }
}

/** @param {SampleRef[]} refs @param {NamedFile[]} lists */
async function labelsFrom(refs, lists) {
  const texts = await Promise.all(lists.filter(({ blob }) => blob.size <= mostText).map(async ({ path, blob }) => ({ path, text: await blob.text() })));
  return labelled(refs, texts, classesOf(model.peek()?.card.outputs[0]?.shape));
}
/** Largest size of a label file. */
const mostText = 20e6;

/** Labels are read again for another model, which may have other classes. */
async function relabel() {
  const { refs, labelFiles, source } = samples.peek();
  if (refs.length === 0 || source) return;
  const read = await labelsFrom(refs, labelFiles);
  samples.value = { ...samples.peek(), labelSource: read.source, labelFailure: read.failure, labels: read.labels, names: read.names };
}

/** Adds random samples, marked as such wherever they are shown. */
export async function addRandomSamples() {
  const open = model.peek();
  if (!open) return;
  try {
    const files = await open.demoSamples(randomSamples);
    samples.value = noSamples;
    await addSamples(files, { source: randomData });
  } catch (error) {
    fail('Random samples could not be generated', error, 'Add samples of your own.');
  }
}

/** Removes one sample. @param {string} name */
export async function removeSample(name) {
  const { files, refs, ...about } = samples.peek();
  const parts = new Set(refs.find((ref) => ref.name === name)?.parts);
  const left = files.filter((file) => !parts.has(file.path));
  if (left.length === 0) return clearSamples();
  stopMeasuring();
  samples.value = { files: left, refs: refs.filter((ref) => ref.name !== name), ...about };
  say(`${name} is removed; ${plural(samples.peek().refs.length, 'sample')} remain.`);
  await look();
}

/** Restores samples that were left out. @param {Samples['skipped']} which */
export function useAgain(which) {
  return addSamples(which.flatMap((one) => one.files));
}

export function clearSamples() {
  stopMeasuring();
  samples.value = noSamples;
  misfits.value = [];
  preview.value = null;
  say('Samples removed.');
}

/** The number of random samples: enough to see a run, and fast. */
const randomSamples = 8;

/** The current preprocessing: the preset with the user's changes. */
export function imageSettings() {
  const { preset, image } = settings.peek();
  return { ...presets.peek()[preset], ...image };
}

/** @param {Partial<PageSettings>} change */
export function set(change) {
  settings.value = { ...settings.peek(), ...change };
  if ('preset' in change || 'image' in change) look();
  if ('threads' in change) {
    engine.value = { ...engine.peek(), noThreads: '' };
    start().then((octet) => (octet.threads = settings.peek().threads), () => {});
  }
}
