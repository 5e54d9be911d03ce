// @ts-check
/**
 * Models of any size in the worker: slices of their files are read, and finished stretches are
 * written. The core decides on the steps; this only reads and writes.
 */

import { ReadAhead } from './read-ahead.js';
import { failure, resultFiles } from './result-files.js';
import { slot } from './shared-memory.js';

/** @import { NamedFile, Progress, StreamedPlan } from './types.js' */
/** @import { Arguments } from './calls.js' */
/** @typedef {typeof import('../pkg/threads/octet.js')} Wasm */
/** @typedef {import('../pkg/threads/octet.js').StreamedModel} Core */
/** @import { Read } from './read-ahead.js' */
/** @typedef {{ to: number, offset: number, bytes: Uint8Array<ArrayBuffer> }} Write */
/** Bytes of the source that are written as they are. @typedef {{ to: number, offset: number, from: Read }} Copy */
/** @typedef {Read | Write | Copy | { plan: StreamedPlan }} Step */

/** Interval in milliseconds of progress reports. */
const interval = 100;

/** The least number of milliseconds between two journals. Journals take a twentieth of the time at most. */
const pause = 200;

/** Bytes and milliseconds of the trial from which the time is forecast. */
const trial = { bytes: 48 << 20, time: 400 };

/** @type {Map<number, { core: Core, source: Source }>} */
const models = new Map();

/** @param {number} key */
function open(key) {
  const found = models.get(key);
  if (!found) throw failure('order', 'This model is not open.');
  return found;
}

/** The files of a model. */
class Source {
  /** @type {Map<string, Blob>} */
  #files = new Map();
  /** @type {ReadAhead | null} */
  #ahead = null;

  /** @param {NamedFile[]} files */
  add(files) {
    for (const { path, blob } of files) this.#files.set(path, blob);
  }

  /** @param {string} file */
  #blob(file) {
    const blob = this.#files.get(file);
    if (!blob) throw failure('external', `${file} is missing: add it beside the model`);
    return blob;
  }

  /** The bytes of one read. @param {Read} read @returns {Promise<Uint8Array>} */
  async read({ file, offset, length }) {
    const slice = this.#blob(file).slice(offset, offset + length);
    return new Uint8Array(await slice.arrayBuffer().catch((cause) => unreadable(file, cause)));
  }

  /** The bytes that a conversion wants next, which are valid until the next call. @param {Core} core @param {Read} wanted */
  async next(core, wanted) {
    try {
      const bytes = await this.#ahead?.take(wanted);
      if (bytes) return bytes;
      // The conversion begins, or has another plan.
      this.rest();
      this.#ahead = new ReadAhead((file) => this.#blob(file), /** @type {Read[]} */ (core.reads()));
      return /** @type {Uint8Array<ArrayBuffer>} */ (await this.#ahead.take(wanted));
    } catch (cause) {
      return unreadable(wanted.file, cause);
    }
  }

  /** Gives the files free until the next read. */
  rest() {
    this.#ahead?.end();
    this.#ahead = null;
  }
}

/** @param {string} file @param {any} cause @returns {never} */
function unreadable(file, cause) {
  if (cause.kind) throw cause;
  throw failure('read', `${file} can't be read (${cause.message}): it may have been moved or changed since it was chosen; choose it again`);
}

/** @param {NamedFile} file */
const identity = ({ path, blob }) => ({ name: path, bytes: blob.size, modified: blob instanceof File ? blob.lastModified : null });

/** @param {Core} core @param {Source} source */
async function readWanted(core, source) {
  for (let wanted; (wanted = /** @type {Read | undefined} */ (core.wanted()));) core.feed(await source.read(wanted));
}

/**
 * Reads the graph of a model. Returns the names of its files of weights.
 *
 * @param {Wasm} wasm
 * @param {Arguments<'openStreamed'>} args
 */
export async function openStreamed(wasm, { key, file }) {
  closeStreamed({ key });
  const core = new wasm.StreamedModel(identity(file));
  const source = new Source();
  source.add([file]);
  try {
    await readWanted(core, source);
    const wanted = core.endGraph();
    models.set(key, { core, source });
    return { wanted };
  } catch (error) {
    core.free();
    throw error;
  }
}

/** Attaches the files of weights and summarizes the model. @param {Arguments<'attachStreamed'>} args */
export async function attachStreamed({ key, files }) {
  const { core, source } = open(key);
  core.attach(files.map(identity));
  source.add(files);
  await readWanted(core, source);
  return { card: core.endConstants() };
}

/**
 * Plans a conversion. With a place, it looks for an earlier one there, and converts some bytes for the
 * time.
 *
 * @param {Arguments<'planStreamed'>} args
 */
export async function planStreamed({ key, settings, limit, place }) {
  const { core, source } = open(key);
  /** @type {StreamedPlan} */
  let plan = core.plan(settings, limit);
  if (!place) return { plan, kept: null, misfit: '', finished: false, rate: 0 };
  const files = await resultFiles(place, plan);
  const texts = await files.journals();
  let [kept, misfit] = [/** @type {number | null} */ (null), ''];
  for (const text of texts) {
    try {
      plan = core.resume(text);
      [kept, misfit] = [core.bytesRead(), ''];
      break;
    } catch (error) {
      misfit = /** @type {Error} */ (error).message;
    }
  }
  const finished = kept === plan.bytesToRead && await files.finished();
  if (kept !== null) core.plan(settings, limit);
  const rate = finished ? 0 : await rateOf(core, source);
  core.plan(settings, limit);
  return { plan, kept, misfit, finished, rate };
}

/** Bytes in a millisecond, without writing. @param {Core} core @param {Source} source */
async function rateOf(core, source) {
  const began = performance.now();
  let read = 0;
  while (read < trial.bytes && performance.now() - began < trial.time) {
    const step = /** @type {Step | undefined} */ (core.step());
    if (!step) break;
    if ('from' in step) read += (await source.next(core, step.from)).length;
    if (!('file' in step)) continue;
    core.feedStep(await source.next(core, step));
    read += step.length;
  }
  source.rest();
  return read / Math.max(0.1, performance.now() - began);
}

/**
 * Converts the model to its end.
 *
 * @param {Wasm} wasm
 * @param {Arguments<'convert'>} args
 * @param {(progress: Progress) => void} report
 */
export async function convert(wasm, { key, settings, limit, place, resume }, report) {
  const { core, source } = open(key);
  wasm.resetControl();
  /** @type {StreamedPlan} */
  let plan = core.plan(settings, limit);
  const files = await resultFiles(place, plan);
  if (resume) plan = goOn(core, await files.journals());
  let told = 0;
  let due = 0;
  const note = async () => {
    const began = performance.now();
    await files.commit(core.journal());
    const now = performance.now();
    due = now + Math.max(pause, 20 * (now - began));
  };
  const tell = () => {
    told = performance.now();
    report({ stage: 'Converting', done: core.bytesRead(), of: plan.bytesToRead, unit: 'bytes', memory: wasm.memoryUsage() });
  };
  tell();
  try {
    await files.begin(plan.files, !resume);
    await note();
    for (let step; (step = /** @type {Step | undefined} */ (core.step()));) {
      if ('bytes' in step) {
        await files.write(step.to, step.offset, step.bytes);
        continue;
      }
      if ('plan' in step) {
        // Some weights can't be converted, so the files have another layout.
        plan = step.plan;
        await files.close();
        await files.begin(plan.files, true);
        await note();
        continue;
      }
      // All writes before are done.
      const stopped = Atomics.load(wasm.control(), slot.cancel) !== 0;
      if ((stopped || performance.now() > due) && core.isJournalOld()) await note();
      if (stopped) throw failure('stopped', 'Stopped on request.');
      if ('from' in step) await files.write(step.to, step.offset, await source.next(core, step.from));
      else core.feedStep(await source.next(core, step));
      if (performance.now() - told > interval) tell();
    }
    tell();
    const text = core.journal();
    const { model, outcome } = core.finish();
    await files.finish(/** @type {Uint8Array<ArrayBuffer>} */ (model), text);
    return { outcome, files: [{ name: plan.model, bytes: model.length }, ...plan.files], memory: wasm.memoryUsage() };
  } finally {
    source.rest();
    await files.close();
  }
}

/**
 * Skips what an earlier conversion has written; returns its plan.
 *
 * @param {Core} core @param {string[]} texts @returns {StreamedPlan}
 */
function goOn(core, texts) {
  /** @type {unknown} */
  let problem = failure('journal', 'there is no unfinished conversion at this place: start it again');
  for (const text of texts) {
    try {
      return core.resume(text);
    } catch (error) {
      problem = error;
    }
  }
  throw problem;
}

/** Removes what a conversion with these settings has made. @param {Arguments<'discardStreamed'>} args */
export async function discardStreamed({ key, settings, limit, place }) {
  const { core } = open(key);
  /** @type {StreamedPlan} */
  const plan = core.plan(settings, limit);
  const files = await resultFiles(place, plan);
  if ((await files.journals()).length > 0) await files.discard();
}

/** @param {Arguments<'closeStreamed'>} args */
export function closeStreamed({ key }) {
  models.get(key)?.core.free();
  models.delete(key);
}
