// @ts-check
/**
 * One worker and the calls it has to answer. Whatever happens to the worker, each call ends: with its value, with an `OctetError`, or
 * with an `AbortError` within a fraction of a second of being stopped.
 */

import { slot } from './shared-memory.js';

/** @import { Failure, Progress, Shared } from './types.js' */
/** @import { Answer, Arguments, Call, Reply, Request } from './calls.js' */

/** How long a worker may take to stop by itself, in milliseconds, before it is ended. */
const patience = 100;

/** How long threads may take to start once the engine is loaded, in milliseconds. */
const startup = 10_000;

/** How often shared memory is looked at while a call runs, in milliseconds. */
const glance = 100;

/** What went wrong, in words, with a `kind` to act on. */
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

/** @typedef {{ signal?: AbortSignal, enough?: AbortSignal, gently?: AbortSignal, onProgress?: (progress: Progress) => void }} CallOptions `enough`: when it fires, the call ends early, with what it has; `gently`: it ends as on `signal`, but the worker is kept, however long its step takes */

/** A worker. It dies once. */
export class Engine {
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  #next = 1;
  /** @type {Shared | null} */
  #shared = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #watch;
  /** Runs while the threads are starting. @type {ReturnType<typeof setTimeout> | undefined} */
  #late;
  /** Whether it has started well: what ends it from then on is a crash. */
  #begun = false;
  alive = true;

  /** @param {'threads' | 'baseline'} variant @param {number} threads */
  constructor(variant, threads) {
    this.worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'octet' });
    this.worker.addEventListener('message', (event) => this.#answer(event.data));
    this.worker.addEventListener('error', (event) => {
      event.preventDefault();
      const kind = this.#begun ? 'crash' : this.#late === undefined ? 'load' : 'threads';
      this.end(new OctetError({ kind, message: event.message || 'The worker could not be loaded.' }));
    });
    this.started = this.#start(variant, threads);
    this.started.then(() => (this.#begun = true), () => {});
  }

  /**
   * Its one report says that the engine is loaded and the threads are next. Only then does the clock run: a slow network is no
   * reason to do without threads. (Seen in Firefox where a test drives it, in one of twenty starts: `new Worker` does not return in the
   * worker that starts the pool. Undriven it did in 61 of 61.)
   *
   * @param {'threads' | 'baseline'} variant
   * @param {number} threads
   * @returns {Promise<void>}
   */
  async #start(variant, threads) {
    const late = () => this.end(new OctetError({ kind: 'threads', message: `no answer within ${startup / 1000} s` }));
    const onProgress = () => (this.#late = setTimeout(late, startup));
    try {
      const { shared } = await this.call('start', { variant, threads }, { onProgress });
      this.#shared = shared;
    } catch (error) {
      this.end(error);
      throw error;
    } finally {
      clearTimeout(this.#late);
      this.#late = undefined;
    }
  }

  /**
   * @template {Call} K
   * @param {K} call
   * @param {Arguments<K>} args
   * @param {CallOptions} [options]
   * @returns {Promise<Answer<K>>}
   */
  call(call, args, { signal, enough, gently, onProgress } = {}) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted || gently?.aborted) return reject(aborted());
      if (!this.alive) return reject(new OctetError({ kind: 'crash', message: 'The worker has ended.' }));
      const id = this.#next++;
      const stop = () => this.#stop(id);
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
        if (this.#pending.size === 0) clearInterval(this.#watch);
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
      if (this.#pending.size === 1) {
        clearInterval(this.#watch);
        this.#watch = setInterval(() => this.#look(), glance);
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
      pending.onProgress = undefined;
      setTimeout(() => this.#pending.has(id) && this.end(aborted()), patience);
    } else {
      this.end(aborted());
    }
  }

  /** Reads in shared memory what the worker can't say, as it waits for its threads: that one panicked, and each sample that is done. */
  #look() {
    if (!this.#shared) return;
    const { control, panic } = this.#shared;
    if (Atomics.load(control, slot.panicked) !== 0) {
      const message = new TextDecoder().decode(panic.slice()).replace(/\0+$/, '');
      return this.end(new OctetError({ kind: 'crash', message }));
    }
    const done = Atomics.load(control, slot.done);
    for (const pending of this.#pending.values()) {
      const { progress } = pending;
      // Memory as the worker last told it is not memory now: left out.
      if (progress?.unit === 'samples') advance(pending, { ...progress, done, memory: undefined });
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

  /** Ends the worker, and every call with it. @param {unknown} reason */
  end(reason) {
    if (!this.alive) return;
    this.alive = false;
    clearInterval(this.#watch);
    this.worker.terminate();
    for (const pending of [...this.#pending.values()]) pending.reject(reason);
  }
}

/**
 * Samples are told by the worker, a portion at a time, and seen in shared memory, one by one: within a stage the count never goes back,
 * and what is no news is not passed on.
 *
 * @param {Pending} pending
 * @param {Progress} progress
 */
function advance(pending, progress) {
  const { done: before = 0, stage } = pending.progress ?? {};
  const counts = progress.unit === 'samples' && progress.stage === stage;
  if (counts && !progress.memory && (progress.done ?? 0) <= before) return;
  pending.progress = counts ? { ...progress, done: Math.max(progress.done ?? 0, before) } : progress;
  pending.onProgress?.(pending.progress);
}

/**
 * The value, or the abort, whichever comes first. What is waited for goes on.
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
