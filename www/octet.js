// @ts-check
/**
 * Octet for JavaScript: everything the page can do, and nothing of the page.
 *
 *     import { Octet } from './www/octet.js';
 *     const octet = await Octet.start();
 *     const model = await octet.open(file);
 *     await model.calibrate(samples, { method: 'minmax' }, console.log);
 *     const { model: bytes, report, summary } = await model.quantize({ activations: 'u8' });
 *
 * All work is done in a worker. Every long call takes an `AbortSignal`; when it fires the call ends within a fraction of a second with an
 * `AbortError`. A call that can't be stopped in time, and a worker that dies, cost the worker and not the
 * model: the next call starts another one and opens the file again by itself.
 */

import { detect } from './capabilities.js';
import { slot } from './types.js';

/** @import { CalibrateOptions, CalibrationSummary, Card, Decoded, Failure, Memory, NamedFile, Progress, QuantizeSettings, Reply, Result, SampleRef, SampleSettings, Shared } from './types.js' */
/** @import { Capabilities } from './capabilities.js' */

/** How long a worker may take to stop by itself, in milliseconds, before it is ended. */
const patience = 120;

/** How long a worker may take to start its threads, in milliseconds, before one without threads is started. */
const startup = 20_000;

/** What went wrong, in words, with a `kind` to act on. */
export class OctetError extends Error {
  /** @param {Failure} failure */
  constructor({ kind, message }) {
    super(message);
    this.name = 'OctetError';
    /** `model`, `external`, `sample`, `quantize`, `engine`, `order`, `stopped`, `crash`, `load` … */
    this.kind = kind;
  }
}

/**
 * @typedef {object} Pending a call that has no answer yet
 * @property {(value: any) => void} resolve
 * @property {(reason: unknown) => void} reject
 * @property {((progress: Progress) => void) | undefined} onProgress
 */

/** @typedef {{ signal?: AbortSignal, onProgress?: (progress: Progress) => void }} CallOptions */

/** A worker and the calls it has to answer. It dies once. */
class Engine {
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  #next = 1;
  /** @type {Shared | null} */
  #shared = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #watch;
  alive = true;
  threads = 1;

  /** @param {'threads' | 'baseline'} variant @param {number} threads */
  constructor(variant, threads) {
    this.worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'octet' });
    this.worker.addEventListener('message', (event) => this.#answer(event.data));
    this.worker.addEventListener('error', (event) => {
      event.preventDefault();
      this.end(new OctetError({ kind: 'load', message: event.message || 'The worker could not be loaded.' }));
    });
    /** @type {Promise<void>} */
    this.started = this.call('start', { variant, threads }).then(({ threads, shared }) => {
      this.threads = threads;
      this.#shared = shared;
    });
    this.started.catch(() => {});
  }

  /** Whether it has started by then. @param {number} milliseconds @returns {Promise<boolean>} */
  startsWithin(milliseconds) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => resolve(false), milliseconds);
      this.started.then(() => resolve(true), reject).finally(() => clearTimeout(late));
    });
  }

  /**
   * @param {string} call
   * @param {object} args
   * @param {CallOptions} [options]
   * @returns {Promise<any>}
   */
  call(call, args, { signal, onProgress } = {}) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(aborted());
      if (!this.alive) return reject(new OctetError({ kind: 'crash', message: 'The worker has ended.' }));
      const id = this.#next++;
      const stop = () => this.#stop(id);
      const settle = () => {
        signal?.removeEventListener('abort', stop);
        this.#pending.delete(id);
        if (this.#pending.size === 0) clearInterval(this.#watch);
      };
      this.#pending.set(id, {
        resolve: (value) => (settle(), resolve(value)),
        reject: (reason) => (settle(), reject(reason)),
        onProgress,
      });
      signal?.addEventListener('abort', stop);
      if (this.#pending.size === 1) {
        clearInterval(this.#watch);
        this.#watch = setInterval(() => this.#look(), 100);
      }
      this.worker.postMessage({ id, call, args });
    });
  }

  /** Stops one call: politely where memory is shared, then by ending the worker. @param {number} id */
  #stop(id) {
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (this.#shared) {
      Atomics.store(this.#shared.control, slot.cancel, 1);
      // The worker gets a moment to stop by itself, and so to keep what it holds.
      this.#pending.set(id, { ...pending, onProgress: undefined });
      setTimeout(() => this.#pending.has(id) && this.end(aborted()), patience);
    } else {
      this.end(aborted());
    }
  }

  /** A thread that panics can't say so itself, as the worker waits for it: its last words are in shared memory. */
  #look() {
    if (!this.#shared || Atomics.load(this.#shared.control, slot.panicked) === 0) return;
    const message = new TextDecoder().decode(this.#shared.panic.slice()).replace(/\0+$/, '');
    this.end(new OctetError({ kind: 'crash', message }));
  }

  /** @param {Reply} reply */
  #answer({ id, value, failure, progress }) {
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (progress) return pending.onProgress?.(progress);
    if (!failure) return pending.resolve(value);
    if (failure.kind === 'stopped') return pending.reject(aborted());
    if (failure.kind === 'crash') return this.end(new OctetError(failure));
    pending.reject(new OctetError(failure));
  }

  /** Ends the worker, and every call with it. @param {unknown} reason */
  end(reason) {
    if (!this.alive) return;
    this.alive = false;
    clearInterval(this.#watch);
    this.worker.terminate();
    for (const pending of [...this.#pending.values()]) pending.reject(reason);
  }
}

/** The engine room: starts workers and opens models. */
export class Octet {
  /** @type {Engine} */
  #engine;
  #threads;
  #keys = 1;

  /** @param {Capabilities} capabilities @param {number} threads @private */
  constructor(capabilities, threads) {
    /** What this browser can do, and why. */
    this.capabilities = capabilities;
    this.#threads = threads;
    this.#engine = this.#begin(threads);
  }

  /**
   * Picks the build for this browser and starts the worker.
   *
   * @param {{ threads?: number, variant?: 'threads' | 'baseline' }} [options] `threads`: as many as there are cores where none is given
   * @returns {Promise<Octet>}
   */
  static async start({ threads, variant } = {}) {
    const found = detect();
    if (!found.variant) throw new OctetError({ kind: 'load', message: found.reason });
    const capabilities = variant && variant !== found.variant
      ? { ...found, variant, reason: `The ${variant} build was asked for.`, threads: variant === 'baseline' ? 1 : found.threads }
      : found;
    const octet = new Octet(capabilities, clamp(threads ?? capabilities.threads, capabilities.threads));
    await octet.engine();
    return octet;
  }

  /** @param {number} threads */
  #begin(threads) {
    return new Engine(this.capabilities.variant ?? 'baseline', threads);
  }

  /** How many threads calibrate. Setting it ends the worker; the next call starts another. */
  get threads() {
    return this.#threads;
  }

  set threads(count) {
    const wanted = clamp(count, this.capabilities.threads);
    if (wanted === this.#threads) return;
    this.#threads = wanted;
    this.#engine.end(aborted());
  }

  /** The worker that is alive, started again where it isn't. @returns {Promise<Engine>} */
  async engine() {
    if (!this.#engine.alive) this.#engine = this.#begin(this.#threads);
    const engine = this.#engine;
    if (this.#threads > 1 && !(await engine.startsWithin(startup)) && engine === this.#engine) {
      // Seen in Firefox on a busy machine: a thread of the pool never reports. One thread needs no pool.
      engine.end(new OctetError({ kind: 'load', message: 'The threads did not start.' }));
      this.#engine = this.#begin(1);
    }
    await this.#engine.started;
    return this.#engine;
  }

  /**
   * Opens a model.
   *
   * @param {File | Blob | Uint8Array<ArrayBuffer>} file
   * @param {CallOptions & { name?: string }} [options]
   * @returns {Promise<Model>}
   */
  async open(file, { name, ...options } = {}) {
    const blob = file instanceof Blob ? file : new Blob([file]);
    const called = name ?? (file instanceof File ? file.name : 'model.onnx');
    const model = new Model(this, this.#keys++, called, blob);
    await model.reach(options);
    return model;
  }

  /**
   * Which of these files make which sample, in the order they will be used.
   *
   * @param {string[]} paths
   * @returns {Promise<SampleRef[]>}
   */
  async group(paths) {
    return (await this.engine()).call('group', { paths });
  }

  /** Settings that many image models were trained with, by name. @returns {Promise<Record<string, Record<string, unknown>>>} */
  async presets() {
    return (await this.engine()).call('presets', {});
  }

  /** What the engine holds. @returns {Promise<Memory>} */
  async memory() {
    return (await this.engine()).call('memory', {});
  }

  /** Ends the worker for good. */
  close() {
    this.#engine.end(aborted());
  }
}

/** An open model. It outlives the worker: the file is kept, and opened again when it is needed. */
export class Model {
  #octet;
  #key;
  #blob;
  /** @type {NamedFile[]} */
  #attached = [];
  /** @type {Engine | null} */
  #home = null;
  /** @type {Engine | null} */
  #calibrated = null;

  /** @param {Octet} octet @param {number} key @param {string} name @param {Blob} blob */
  constructor(octet, key, name, blob) {
    this.#octet = octet;
    this.#key = key;
    this.#blob = blob;
    this.name = name;
    /** @type {Card} */
    this.card = /** @type {any} */ (null);
    /** @type {string[]} the external data files that are still missing */
    this.wanted = [];
  }

  /** The worker that holds this model; opens it there first where it is new. @param {CallOptions} options @returns {Promise<Engine>} */
  async reach(options = {}) {
    const engine = await this.#octet.engine();
    if (this.#home === engine) return engine;
    const opened = await engine.call('open', { key: this.#key, name: this.name, blob: this.#blob }, options);
    this.#home = engine;
    this.#know(opened);
    if (this.#attached.length > 0) {
      this.#know(await engine.call('attach', { key: this.#key, files: this.#attached }, options));
    }
    return engine;
  }

  /** @param {{ card: Card, wanted: string[] }} opened */
  #know({ card, wanted }) {
    this.card = card;
    this.wanted = wanted;
  }

  /**
   * Gives the model the external data files named in `wanted`, all at once.
   *
   * @param {(File | NamedFile)[]} files
   * @param {CallOptions} [options]
   */
  async attach(files, options = {}) {
    const engine = await this.reach(options);
    const named = files.map(namedFile);
    this.#know(await engine.call('attach', { key: this.#key, files: named }, options));
    this.#attached = named;
  }

  /**
   * The first sample, decoded as the model will see it.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {SampleSettings} [settings]
   * @param {CallOptions} [options]
   * @returns {Promise<Decoded>}
   */
  async preview(samples, settings = {}, options = {}) {
    const engine = await this.reach(options);
    return engine.call('preview', { key: this.#key, files: samples.map(namedFile), settings }, options);
  }

  /**
   * Runs the samples and watches the range of every tensor that will be quantized.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {CalibrateOptions} [options]
   * @param {(progress: Progress) => void} [onProgress]
   * @returns {Promise<CalibrationSummary>}
   */
  async calibrate(samples, options = {}, onProgress) {
    const { method = 'minmax', settings = {}, samples: reading = {}, signal } = options;
    const engine = await this.reach({ signal, onProgress });
    this.#calibrated = null;
    const args = { key: this.#key, files: samples.map(namedFile), method, settings, samples: reading };
    const summary = await engine.call('calibrate', args, { signal, onProgress });
    this.#calibrated = engine;
    return summary;
  }

  /**
   * Makes the quantized model from what the calibration saw; may be called again with other settings.
   *
   * @param {QuantizeSettings} [settings]
   * @param {CallOptions} [options]
   * @returns {Promise<Result>}
   */
  async quantize(settings = {}, options = {}) {
    const engine = await this.reach(options);
    if (this.#calibrated !== engine) {
      throw new OctetError({ kind: 'order', message: 'There are no ranges yet: calibrate this model first.' });
    }
    return engine.call('quantize', { key: this.#key, settings }, options);
  }

  /** Whether the ranges of a calibration are held, so that `quantize` can be called. */
  get calibrated() {
    return this.#calibrated !== null && this.#calibrated === this.#home && this.#calibrated.alive;
  }

  /** The report so far, as YAML. @returns {Promise<string>} */
  async report() {
    return (await this.reach()).call('report', { key: this.#key });
  }

  /** Frees what the worker holds of this model. */
  async close() {
    const home = this.#home;
    this.#home = null;
    if (home?.alive) await home.call('close', { key: this.#key });
  }
}

/** @param {File | NamedFile} file @returns {NamedFile} */
function namedFile(file) {
  return file instanceof File ? { path: file.webkitRelativePath || file.name, blob: file } : file;
}

/** @param {number} count @param {number} most */
function clamp(count, most) {
  return Math.max(1, Math.min(Math.floor(count) || 1, Math.max(1, most)));
}

function aborted() {
  return new DOMException('Stopped on request; the file is kept.', 'AbortError');
}
