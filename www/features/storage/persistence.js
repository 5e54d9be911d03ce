// @ts-check
/**
 * Persistence across reloads: settings, model, samples, result and run history, in this browser's
 * IndexedDB only. The page offers to restore them, and one click deletes them.
 */

import { batch, effect, signal } from '../../library/signals.js';
import { removeJournal, removeValues } from '../../browser-storage.js';
import { say } from '../../state/messages.js';
import { done, model, modelChanged, presets, report, run, runHistory, samples, settings } from '../../state/page.js';
import { forgotten, linkOfModel } from '../../state/surroundings.js';
import { addSamples } from '../data/samples.js';
import { chosenByHand } from '../data/state.js';
import { open as openModel, take } from '../model/open.js';
import { removeKeptResults } from './kept-results.js';

/** @import { NamedFile, Result } from '../../types.js' */
/** @import { Done, HistoryEntry, PageSettings, Samples } from '../../state/page.js' */

/** @typedef {{ name: string, files: NamedFile[] }} StoredModel the model's own file is the first */
/** @typedef {Pick<Samples, 'files' | 'source' | 'labels' | 'names' | 'labelFiles' | 'characters'>} StoredSamples */
/** @typedef {Omit<Done, 'result'> & { model: Blob, report: string, summary: Result['summary'], ranges?: Result['ranges'] }} StoredResult */

const store = 'kept';
/**
 * Largest size that is stored. A browser limits the storage of an origin and may delete all of it
 * when it runs out.
 */
const most = 1e9;

/**
 * The stored model, if there is one.
 *
 * @type {import('../../library/signals.js').Signal<{ name: string, bytes: number } | null>}
 */
export const stored = signal(/** @type {any} */ (null));

/** @type {Promise<IDBDatabase> | null} */
let opened = null;

function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open('octet', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(store);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

/** @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest<T>} work @returns {Promise<T>} */
async function ask(mode, work) {
  const request = work((await database()).transaction(store, mode).objectStore(store));
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** True if storing failed: refused by the browser, or no space. Reported once. */
let refused = false;

/** This tab; the stored data belongs to the tab that worked last. */
const tab = `${Date.now()} ${Math.random()}`;
/** Everything that this tab has stored. @type {Map<string, unknown>} */
const own = new Map();

/**
 * Stores a value of this tab; where another tab has worked meanwhile, all values of this one take
 * the place of its data.
 *
 * @param {string} key
 * @returns {Promise<void>}
 */
async function keep(key) {
  const transaction = (await database()).transaction(store, 'readwrite');
  const all = transaction.objectStore(store);
  const put = (/** @type {string} */ name) => void (own.get(name) === null ? all.delete(name) : all.put(own.get(name), name));
  const owner = all.get('tab');
  owner.onsuccess = () => {
    if (owner.result === tab) return put(key);
    all.clear();
    all.put(tab, 'tab');
    for (const name of own.keys()) put(name);
  };
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

/** @param {string} key @param {unknown} value */
function storeValue(key, value) {
  if (refused) return;
  own.set(key, value);
  keep(key).catch(() => {
    if (!refused) say('This browser cannot store data for the next visit; downloads are not affected.');
    refused = true;
  });
}

/** @param {NamedFile[]} files */
const size = (files) => files.reduce((sum, { blob }) => sum + blob.size, 0);

/** Loads the stored model's name, then stores every change from now on. */
export async function startPersistence() {
  try {
    /** @type {StoredModel | undefined} */
    const before = await ask('readonly', (all) => all.get('model'));
    if (before?.files?.length) stored.value = { name: before.name, bytes: size(before.files) };
  } catch {
    refused = true;
    return;
  }
  // A page that was left in a run may have left its file.
  removeValues().catch(() => {});
  // Until a model is open, the stored data stays. A link brings its model again, so what was stored
  // before it stays, too.
  const begun = () => model.value !== null && model.value !== forgotten.value && linkOfModel() === null;
  effect(() => {
    modelChanged.value;
    const now = model.value;
    if (now && begun()) storeValue('model', size(now.files) <= most ? { name: now.name, files: now.files } : null);
  });
  effect(() => {
    const { document, preset, image, rate } = settings.value;
    if (begun()) storeValue('settings', { document, preset, image, rate });
  });
  effect(() => {
    const { files: used, skipped, source, labels, names, labelFiles, characters } = samples.value;
    // Samples that were left out are checked again.
    const files = [...used, ...skipped.flatMap((one) => one.files)];
    if (begun()) storeValue('samples', size(files) <= most ? { files, source, labels, names, labelFiles, characters } : null);
  });
  effect(() => {
    const [now, reported] = [done.value, report.value];
    if (!begun()) return;
    // During a run the result before it stays stored, in case of a reload.
    if (!now) return void (run.value || storeValue('result', null));
    const { result, ...rest } = now;
    storeValue('result', { ...rest, model: result.file, report: reported, summary: result.summary, ranges: result.ranges });
  });
  effect(() => {
    if (begun()) storeValue('tried', runHistory.value);
  });
}

/** Restores everything that was stored. */
export async function restore() {
  const read = (/** @type {string} */ key) => ask('readonly', (all) => all.get(key));
  /** @type {[StoredModel | undefined, Partial<PageSettings> | undefined, StoredSamples | undefined, StoredResult | undefined, HistoryEntry[] | undefined]} */
  const [file, choices, storedSamples, result, list] = /** @type {any} */ (await Promise.all(['model', 'settings', 'samples', 'result', 'tried'].map(read)));
  if (!file?.files?.length) return deleteStored();
  if (file.files.length > 1) await take(file.files);
  else await openModel(file.files[0]);
  if (!model.peek()) return;
  batch(() => {
    if (choices) chosenByHand.value = true;
    if (choices) settings.value = { ...settings.peek(), ...choices, preset: choices.preset && choices.preset in presets.peek() ? choices.preset : settings.peek().preset };
    // Older entries have no figures by node.
    if (list) runHistory.value = list.map((one) => ({ ...one, layers: one.layers ?? {} }));
  });
  if (storedSamples && storedSamples.files.length > 0) await addSamples([...storedSamples.files, ...(storedSamples.labelFiles ?? [])], storedSamples.source ? { source: storedSamples.source, labels: storedSamples.labels, names: storedSamples.names ?? new Map(), characters: storedSamples.characters ?? [] } : undefined);
  if (result) {
    const { model: bytes, report: reported, summary, ranges = {}, ...rest } = result;
    // Older results have no ranges, no file name by scheme, and no advice.
    const { scheme = rest.document.scheme ?? 'static', fileName = rest.name.replace(/(\.onnx)?$/i, '_int8.onnx'), advice = [] } = summary;
    batch(() => {
      done.value = { ...rest, result: { file: bytes, ranges, summary: { ...summary, scheme, fileName, advice } } };
      report.value = reported;
    });
  }
  say(`${file.name} is restored from the last visit.`);
}

/** Deletes all stored data. The open model stays open, and work on it is not stored. */
export async function deleteStored() {
  own.clear();
  forgotten.value = model.peek();
  try {
    await ask('readwrite', (all) => all.clear());
    localStorage.clear();
    await removeKeptResults();
    await removeJournal();
    await removeValues();
    for (const name of await caches.keys()) if (name.startsWith('octet ')) await caches.delete(name);
  } catch {
    // Without storage there is nothing to delete.
  }
  stored.value = null;
  say(`All data this page stored in your browser is deleted.${forgotten.peek() ? ' Nothing of the open model is stored again.' : ''}`);
}
