// @ts-check
/**
 * One worker and its pending calls. Every call ends: with its value, with an `OctetError`, or with
 * an `AbortError` a fraction of a second after it was stopped.
 */

import { files, startWorker } from './environment.js';
import { slot } from './shared-memory.js';

/** @import { Failure, Progress, Shared } from './types.js' */
/** @import { Answer, Arguments, Call, Reply, Request } from './calls.js' */

/** Time in milliseconds that threads have to start once the engine is loaded. */
const startup = 10_000;

/** Interval in milliseconds at which shared memory is read during a call. */
const glance = 100;

/**
 * A new name for the lock of a worker; none where the page has no locks.
 *
 * @returns {string | undefined}
 */
function lockName() {
  const inBrowser = 'document' in globalThis || 'WorkerGlobalScope' in globalThis;
  return inBrowser && globalThis.navigator?.locks ? `octet worker ${crypto.randomUUID()}` : undefined;
}

/** An error with a `kind` to act on. */
export class OctetError extends Error {
  /** @param {Failure} failure */
  constructor({ kind, message }) {
    super(message);
    this.name = 'OctetError';
    /** `model`, `external`, `sample`, `quantize`, `engine`, `order`, `stopped`, `crash`, `load`, `threads` … */
    this.kind = kind;
  }
}

/**
 * @typedef {object} Pending a call that has no answer yet
 * @property {(value: any) => void} resolve
 * @property {(reason: unknown) => void} reject
 * @property {((progress: Progress) => void) | undefined} onProgress
 * @property {Progress | null} progress what was reported last
 */

/** @typedef {{ signal?: AbortSignal, enough?: AbortSignal, gently?: AbortSignal, patience?: number, onProgress?: (progress: Progress) => void }} CallOptions `enough`: when it fires, the call ends early, with what it has; `gently`: it ends as on `signal`, but the worker is kept, however long its step takes; `patience`: milliseconds that the worker has to stop by itself on `signal` */

/** @typedef {(variant: 'threads' | 'baseline') => Promise<WebAssembly.Module>} CompiledWasm */

/** A worker. Once ended, it is not restarted. */
export class Engine {
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  #next = 1;
  /** @type {Shared | null} */
  #shared = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #watch;
  /** Set while the threads are starting. @type {ReturnType<typeof setTimeout> | undefined} */
  #late;
  /** True once started: an error after that is a crash. */
  #begun = false;
  alive = true;

  /** True if the worker shares its memory with this side. */
  get sharesMemory() {
    return this.#shared !== null;
  }

  /**
   * @param {'threads' | 'baseline'} variant
   * @param {number} threads
   * @param {CompiledWasm} [compiled] where the compiled wasm comes from, if other engines share it
   */
  constructor(variant, threads, compiled) {
    this.worker = startWorker();
    this.worker.addEventListener('message', (event) => this.#answer(event.data));
    this.worker.addEventListener('error', (event) => {
      event.preventDefault();
      const kind = this.#begun ? 'crash' : this.#late === undefined ? 'load' : 'threads';
      this.end(new OctetError({ kind, message: event.message || 'The worker could not be loaded.' }));
    });
    this.started = this.#start(variant, threads, compiled);
    this.started.then(() => (this.#begun = true), () => {});
  }

  /**
   * The only progress report means that the engine is loaded and the threads start next. The
   * timeout begins there, so a slow network does not cost the threads. (In Firefox under test
   * control, `new Worker` did not return in the worker that starts the pool, in one of twenty
   * starts. Without test control it returned in 61 of 61.)
   *
   * @param {'threads' | 'baseline'} variant
   * @param {number} threads
   * @param {CompiledWasm} [compiled]
   * @returns {Promise<void>}
   */
  async #start(variant, threads, compiled) {
    const late = () => this.end(new OctetError({ kind: 'threads', message: `no answer within ${startup / 1000} s` }));
    const onProgress = () => (this.#late = setTimeout(late, startup));
    try {
      const lock = lockName();
      // Without it the worker compiles by itself, and says what is missing.
      const module = await compiled?.(variant).catch(() => undefined);
      const { shared, locked } = await this.call('start', { variant, threads, files: files(), lock, ...(module && { module }) }, { onProgress });
      this.#shared = shared;
      if (lock && locked) this.#outlive(lock);
    } catch (error) {
      this.end(error);
      throw error;
    } finally {
      clearTimeout(this.#late);
      this.#late = undefined;
    }
  }

  /**
   * Ends the calls of a worker that the browser ended. No event tells of that, but its lock is free
   * then.
   *
   * @param {string} lock
   */
  #outlive(lock) {
    const ended = () => this.end(new OctetError({ kind: 'crash', message: 'the browser ended its worker' }));
    navigator.locks.request(lock, ended).catch(() => {}); // refused: then nothing tells of it
  }

  /**
   * @template {Call} K
   * @param {K} call
   * @param {Arguments<K>} args
   * @param {CallOptions} [options]
   * @returns {Promise<Answer<K>>}
   */
  call(call, args, { signal, enough, gently, onProgress, patience = 100 } = {}) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted || gently?.aborted) return reject(aborted());
      if (!this.alive) return reject(new OctetError({ kind: 'crash', message: 'The worker has ended.' }));
      const id = this.#next++;
      const stop = () => this.#stop(id, patience);
      const suffice = () => this.worker.postMessage({ id, enough: true });
      const ask = () => {
        if (this.#shared) Atomics.store(this.#shared.control, slot.cancel, 1);
        suffice();
      };
      const settle = () => {
        signal?.removeEventListener('abort', stop);
        enough?.removeEventListener('abort', suffice);
        gently?.removeEventListener('abort', ask);
        this.#pending.delete(id);
      };
      this.#pending.set(id, {
        resolve: (value) => (settle(), resolve(value)),
        reject: (reason) => (settle(), reject(reason)),
        onProgress,
        progress: null,
      });
      signal?.addEventListener('abort', stop);
      enough?.addEventListener('abort', suffice);
      gently?.addEventListener('abort', ask);
      // It ends at a glance that finds no call: to set and clear it took 0.03 ms of each call.
      this.#watch ??= setInterval(() => this.#look(), glance);
      this.worker.postMessage({ id, call, args });
    });
  }

  /**
   * Stops one call: by request if memory is shared, otherwise by terminating the worker.
   *
   * @param {number} id
   * @param {number} patience milliseconds until the worker is terminated
   */
  #stop(id, patience) {
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (this.#shared) {
      Atomics.store(this.#shared.control, slot.cancel, 1);
      // The worker gets some time to stop by itself and so keep its state.
      pending.onProgress = undefined;
      setTimeout(() => this.#pending.has(id) && this.end(aborted()), patience);
    } else {
      this.end(aborted());
    }
  }

  /**
   * Reads from shared memory while the worker waits for its threads: a panic, and the number of
   * finished samples.
   */
  #look() {
    if (this.#pending.size === 0) {
      clearInterval(this.#watch);
      this.#watch = undefined;
      return;
    }
    if (!this.#shared) return;
    const { control, panic } = this.#shared;
    if (Atomics.load(control, slot.panicked) !== 0) {
      const message = new TextDecoder().decode(panic.slice()).replace(/\0+$/, '');
      return this.end(new OctetError({ kind: 'crash', message }));
    }
    const done = Atomics.load(control, slot.done);
    for (const pending of this.#pending.values()) {
      const { progress } = pending;
      // The last reported memory figures and layer are outdated here, so they are omitted.
      if (progress?.unit === 'samples' || progress?.unit === 'layers') advance(pending, { ...progress, done, memory: undefined, layer: undefined });
    }
  }

  /** @param {Reply} reply */
  #answer({ id, value, failure, progress }) {
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (progress) return advance(pending, progress);
    if (!failure) return pending.resolve(value);
    if (failure.kind === 'stopped') return pending.reject(aborted());
    if (failure.kind === 'crash') return this.end(new OctetError(failure));
    pending.reject(new OctetError(failure));
  }

  /** Terminates the worker and rejects all of its calls. @param {unknown} reason */
  end(reason) {
    if (!this.alive) return;
    this.alive = false;
    clearInterval(this.#watch);
    this.worker.terminate();
    for (const pending of [...this.#pending.values()]) pending.reject(reason);
  }
}

/**
 * Merges the sample counts of the worker, in batches, and of shared memory, one by one. Within a
 * stage the count never decreases, and progress without news is dropped.
 *
 * @param {Pending} pending
 * @param {Progress} progress
 */
function advance(pending, progress) {
  const { done: before = 0, stage } = pending.progress ?? {};
  const counts = (progress.unit === 'samples' || progress.unit === 'layers') && progress.stage === stage;
  if (counts && !progress.memory && (progress.done ?? 0) <= before) return;
  pending.progress = counts ? { ...progress, done: Math.max(progress.done ?? 0, before) } : progress;
  pending.onProgress?.(pending.progress);
}

/**
 * Resolves with the value or rejects on abort, whichever is first. The promise itself continues.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export function unlessAborted(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(aborted());
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

export function aborted() {
  return new DOMException('Stopped on request; the file is kept.', 'AbortError');
}
