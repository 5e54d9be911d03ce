// @ts-check
/** Opens models, adds their external data, and gives every file that is dropped to its panel. */

import { baseName, isData, isModel, isPicture, isRanges, isStatistics } from '../../files.js';
import { OctetError, unlessAborted } from '../../octet.js';
import { plural } from '../../library/format.js';
import { batch } from '../../library/signals.js';
import { stopMeasuring } from '../../state/background-task.js';
import { fail, problem, say } from '../../state/messages.js';
import { comparison, converting, done, large, model, modelChanged, opening, ranges, run, runHistory, selected, settings, statistics, timing, waiting } from '../../state/page.js';
import { start } from '../../state/session.js';
import { asChosen } from '../data/image-settings.js';
import { checkSamples } from '../data/sample-check.js';
import { addSamples, relabel, tryPreprocessings } from '../data/samples.js';
import { chosenByHand, trial } from '../data/state.js';

/** @import { NamedFile } from '../../types.js' */

/** Models with more bytes than this are converted piece by piece. */
const inMemory = 2 ** 30;

/** True if all models are, whatever their size: `?pieces`, or `?pieces=` with the size of a file of weights. */
const always = new URLSearchParams(location.search).has('pieces');

/** @type {AbortController | null} */
let loading = null;

/** @param {NamedFile[]} files the model and its files of weights */
const isLarge = (files) => always || files.reduce((sum, { blob }) => sum + blob.size, 0) > inMemory;

/** Sorts files from any source: model, external data, samples. @param {NamedFile[]} files */
export async function take(files) {
  if (files.length === 0) return;
  if (run.peek() || converting.peek()) return say('A run is in progress; cancel it before adding files.');
  const wanted = new Set(model.peek()?.wanted ?? []);
  const beside = files.filter(({ path }) => wanted.has(path) || wanted.has(baseName(path)));
  const models = files.filter((file) => isModel(file) && !beside.includes(file));
  const others = files.filter((file) => !beside.includes(file) && !models.includes(file));
  const rest = others.filter((file) => !isStatistics(file) && !isRanges(file));
  const [shared, tables] = [others.filter(isStatistics), others.filter(isRanges)];
  if (beside.length > 0) return attach(beside);
  if (models.length > 0) {
    const weights = rest.filter((file) => !isPicture(file) && !/\.np[yz]$/i.test(file.path));
    if (isLarge([models[0], ...weights])) return openInPieces(models[0], weights);
    await open(models[0]);
    const now = model.peek();
    const needed = new Set((now?.wanted ?? []).map(baseName));
    const data = rest.filter(({ path }) => needed.has(baseName(path)));
    if (data.length > 0) await attach(data);
    const left = rest.filter((file) => !data.includes(file));
    if (now && left.length > 0) await addSamples(left);
    if (now && shared.length > 0) await addStatistics(shared);
    if (now && tables.length > 0) await addRanges(tables);
    return;
  }
  if (shared.length > 0) await addStatistics(shared);
  if (tables.length > 0) await addRanges(tables);
  if (rest.length === 0) return;
  const inPieces = large.peek();
  if (inPieces) return inPieces.add(rest);
  if (!model.peek()) {
    if (rest.every(isData)) return wait(rest);
    // Opening an unknown file fails with an explanation.
    return open(rest[0]);
  }
  return addSamples(rest);
}

/** Keeps data until the model comes. @param {NamedFile[]} files */
function wait(files) {
  problem.value = null;
  waiting.value = [...waiting.peek().filter((old) => !files.some(({ path }) => path === old.path)), ...files];
  say(`${plural(waiting.peek().length, 'file')} of data kept: now open the model.`);
}

/** Adds the data that came before the model. */
async function addWaiting() {
  const files = waiting.peek();
  waiting.value = [];
  if (files.length > 0) await addSamples(files);
}

/** @param {NamedFile[]} files */
const addStatistics = async (files) => (await import('../sharing/statistics.js')).addStatistics(files);

/** @param {NamedFile[]} files of ranges, of which the last one counts */
const addRanges = async (files) => (await import('../sharing/ranges.js')).addRanges(files[files.length - 1]);

/**
 * Shows downloads that come before an opening; *Cancel* ends them. The caller opens what they give.
 *
 * @template T
 * @param {string} name
 * @param {(signal: AbortSignal, onProgress: (progress: import('../../types.js').Progress) => void) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function downloading(name, work) {
  loading?.abort();
  const mine = (loading = new AbortController());
  problem.value = null;
  opening.value = { name, progress: { stage: 'Downloading' } };
  try {
    return await work(mine.signal, (progress) => {
      if (loading === mine) opening.value = { name, progress };
    });
  } catch (error) {
    if (loading === mine) opening.value = null;
    throw error;
  } finally {
    if (loading === mine) loading = null;
  }
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
    large.peek()?.model.close().catch(() => {});
    batch(() => {
      large.value = null;
      model.value = opened;
      modelChanged.value += 1;
      const proposed = opened.card.pictures;
      if (proposed) settings.value = { ...settings.peek(), ...asChosen(proposed) };
      const { rate: _, ...kept } = settings.peek();
      settings.value = kept;
      chosenByHand.value = false;
      trial.value = null;
      done.value = null;
      opening.value = null;
      clearForModel();
    });
    say(`${name} is open: ${plural(opened.card.parameters, 'parameter')}.`);
    await relabel();
    await checkSamples();
    void tryPreprocessings();
    if (opened.wanted.length === 0) await addWaiting();
  } catch (error) {
    if (loading !== mine) return;
    if (error instanceof OctetError && error.kind === 'memory') return openInPieces({ path, blob }, []);
    opening.value = null;
    fail(`${name} could not be opened`, error, 'Choose another file; nothing else was changed.', () => open({ path, blob }));
  } finally {
    if (loading === mine) loading = null;
  }
}

/** Opens a model that is not held in memory. @param {NamedFile} file @param {NamedFile[]} beside */
async function openInPieces(file, beside) {
  const name = baseName(file.path);
  loading?.abort();
  stopMeasuring();
  const mine = (loading = new AbortController());
  batch(() => {
    problem.value = null;
    opening.value = { name, progress: { stage: 'Reading the graph' } };
  });
  try {
    const { openLarge } = await import('./open-large.js');
    await openLarge(file, beside, mine.signal);
  } catch (error) {
    if (loading === mine) fail(`${name} could not be opened`, error, 'Choose another file; nothing else was changed.', () => openInPieces(file, beside));
  }
  if (loading !== mine) return;
  opening.value = null;
  loading = null;
}

/**
 * Clears the run history and the settings by node and tensor, which don't apply to another model.
 */
function clearForModel() {
  runHistory.value = [];
  comparison.value = null;
  timing.value = null;
  statistics.value = null;
  ranges.value = null;
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
  const attached = files.flatMap((file) => {
    const path = wanted.find((name) => name === file.path) ?? wanted.find((name) => baseName(name) === baseName(file.path));
    return path ? [{ path, blob: file.blob }] : [];
  });
  beside = [...beside.filter((old) => !attached.some((file) => file.path === old.path)), ...attached];
  const missing = wanted.filter((name) => !beside.some((file) => file.path === name));
  if (missing.length > 0) return say(`Still missing: ${missing.join(', ')}.`);
  if (isLarge([...open.files, ...beside])) {
    const weights = beside;
    beside = [];
    return openInPieces(open.files[0], weights);
  }
  try {
    await open.attach(beside);
    say('The model’s external data is attached.');
  } catch (error) {
    fail('The model’s external data could not be attached', error, 'Choose the files that were saved together with this model.');
  }
  beside = [];
  modelChanged.value += 1;
  await checkSamples();
  await addWaiting();
}
/** @type {NamedFile[]} external data attached so far, while more is missing */
let beside = [];
