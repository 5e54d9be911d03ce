// @ts-check
/** Plans, starts, stops and resumes the conversion of the large model, and removes what it made. */

import { resultsFolder } from '../../browser-storage.js';
import { bytes, duration, timeLeft } from '../../library/format.js';
import { batch, effect, untracked } from '../../library/signals.js';
import { aborted, fail, problem, say, sentence } from '../../state/messages.js';
import { converting, large } from '../../state/page.js';
import { document, job, limit, place, planned, removing, result } from './state.js';

/** Time in milliseconds without changes before a plan is made. */
const pause = 150;

/** Room that stays free: the model file and the journals are written beside the weights. */
const reserve = 64e6;

/** @type {AbortController | null} */
let running = null;

const choice = () => ({ settings: document.peek(), limit: limit.peek(), place: place.peek() });

/** Keeps the plan up to date with the model and the choices. Called once. */
export function keepPlan() {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  effect(() => {
    void [document.value, limit.value, place.value];
    const open = large.value;
    untracked(() => {
      clearTimeout(timer);
      batch(() => {
        planned.value = { told: null, failure: '' };
        result.value = null;
      });
      if (open?.model.card) timer = setTimeout(() => void plan(), pause);
    });
  });
}

/** The number of the newest plan. */
let newest = 0;

async function plan() {
  const open = large.peek();
  if (!open?.model.card || job.peek()) return;
  const mine = (newest += 1);
  try {
    const told = await open.model.plan(choice());
    const made = told.finished ? await filesOf(told.plan.model, [told.plan.model, ...told.plan.files.map(({ name }) => name)]) : null;
    if (mine !== newest || large.peek() !== open) return;
    batch(() => {
      planned.value = { told, failure: '' };
      if (made) result.value = { files: made, took: null, peak: 0, folder: '', outcome: null };
    });
  } catch (error) {
    if (mine === newest && large.peek() === open) planned.value = { told: null, failure: sentence(/** @type {Error} */ (error).message) };
  }
}

/**
 * Why there is no room in this browser's storage for the rest of a conversion; empty if there is, or
 * if nobody knows.
 *
 * @param {number} needed
 */
async function lackOfRoom(needed) {
  if (place.peek().folder) return '';
  const { quota, usage = 0 } = await navigator.storage.estimate().catch(() => ({ quota: undefined, usage: 0 }));
  if (quota === undefined || needed + reserve <= quota - usage) return '';
  const elsewhere = canChooseFolder() ? 'choose a folder, ' : '';
  return `the result needs ${bytes(needed + reserve)}, but this browser gives the page only ${bytes(Math.max(0, quota - usage))}: ${elsewhere}free some space on the disk, or use the command line`;
}

/** Converts the model. @param {boolean} resume goes on with an earlier conversion */
export async function convert(resume) {
  const [open, told] = [large.peek(), planned.peek().told];
  if (!open || !told || job.peek()) return;
  const mine = (running = new AbortController());
  const started = performance.now();
  batch(() => {
    problem.value = null;
    result.value = null;
    converting.value = true;
    job.value = { started, base: resume ? told.kept ?? 0 : 0, progress: { stage: 'Converting', done: resume ? told.kept ?? 0 : 0, of: told.plan.bytesToRead, unit: 'bytes' } };
  });
  say(resume ? 'The conversion goes on.' : 'The conversion has started.');
  const { folder } = place.peek();
  try {
    const lack = resume ? '' : await lackOfRoom(told.plan.bytesToWrite);
    if (lack) throw new Error(lack);
    const { files, memory, outcome } = await open.model.convert({ ...choice(), resume }, { signal: mine.signal }, (progress) => {
      const now = job.peek();
      if (running === mine && now) job.value = { ...now, progress: { ...progress, memory: progress.memory ?? now.progress.memory } };
    });
    const took = performance.now() - started;
    const made = folder ? files.map((file) => ({ ...file, blob: null })) : await filesOf(told.plan.model, files.map(({ name }) => name));
    batch(() => {
      job.value = null;
      converting.value = false;
      result.value = { files: made, took, peak: memory.peak, folder: folder?.name ?? '', outcome };
    });
    say(`Done in ${duration(took)}: ${bytes(files.reduce((sum, file) => sum + file.bytes, 0))}.`);
  } catch (error) {
    batch(() => {
      job.value = null;
      converting.value = false;
    });
    if (aborted(error)) say('Stopped. What was made is kept; the conversion can go on.');
    else fail('The conversion stopped', error, 'Your model is not changed.');
    planned.value = { told: null, failure: '' };
    await plan();
  } finally {
    if (running === mine) running = null;
  }
}

/** Stops the conversion. True if one ran. */
export function stop() {
  running?.abort();
  return running !== null;
}

/** Removes what a conversion has made with these choices. */
export async function discard() {
  const open = large.peek();
  if (!open || job.peek()) return;
  removing.value = true;
  try {
    await open.model.discard(choice());
    say('What the conversion made is removed.');
  } catch (error) {
    fail('The files could not be removed', error, 'Close other tabs with this page and try again.');
  }
  batch(() => {
    removing.value = false;
    result.value = null;
    planned.value = { told: null, failure: '' };
  });
  await plan();
}

/** Files of a result in this browser's storage. @param {string} model @param {string[]} names */
async function filesOf(model, names) {
  const folder = await (await resultsFolder()).getDirectoryHandle(model);
  return Promise.all(names.map(async (name) => {
    const blob = await (await folder.getFileHandle(name)).getFile();
    return { name, bytes: blob.size, blob };
  }));
}

/** @typedef {{ showDirectoryPicker?: (options: object) => Promise<FileSystemDirectoryHandle> }} Picker */

export const canChooseFolder = () => 'showDirectoryPicker' in window;

/** Asks for the folder of the result. */
export async function chooseFolder() {
  try {
    const folder = await /** @type {Picker} */ (window).showDirectoryPicker?.({ id: 'octet', mode: 'readwrite' });
    if (folder) place.value = { folder };
  } catch (error) {
    if (!aborted(error)) fail('The folder could not be used', error, 'Choose another folder.');
  }
}

/** Rate and time left of the conversion that runs; empty while unknown. @param {number} now */
export function pace(now) {
  const running = job.value;
  const { done = 0, of = 0 } = running?.progress ?? {};
  const read = done - (running?.base ?? 0);
  const time = now - (running?.started ?? now);
  if (!running || read <= 0 || time <= 0) return { rate: '', left: '' };
  const rate = read / time;
  return { rate: `${bytes(Math.round(rate * 1000))}/s`, left: done < of ? timeLeft((of - done) / rate) : '' };
}
