// @ts-check
/** The real runtime from outside: a worker with one provider, its calls, and its end. */

/** @import { InputTensor, NamedFile, OutputTensor } from '../../types.js' */

/** Time in milliseconds that the threads have to start once the runtime is loaded, for each MB of it. */
const startup = 750;

/** A runtime that has started. Its sessions end with it. */
export class Runtime {
  /** @type {Map<number, { resolve: (value: any) => void, reject: (reason: unknown) => void }>} */
  #pending = new Map();
  #next = 1;
  #ended = '';
  version = '';
  threads = 1;

  /** @param {string} provider @private */
  constructor(provider) {
    this.provider = provider;
    this.worker = new Worker(new URL('runtime-worker.js', import.meta.url), { type: 'module', name: `onnxruntime-web ${provider}` });
    this.worker.addEventListener('message', ({ data: { id, value, failure, stage } }) => {
      if (stage) return this.onStage(stage);
      const call = this.#pending.get(id);
      this.#pending.delete(id);
      if (failure === undefined) call?.resolve(value);
      else call?.reject(new Error(failure));
    });
    this.worker.addEventListener('error', (event) => {
      event.preventDefault();
      this.end(event.message || 'The worker of onnxruntime-web could not be loaded.');
    });
  }

  /** Called when the files of the runtime are loaded, and when its threads run. @param {'loaded' | 'threads'} _stage */
  onStage(_stage) {}

  /**
   * Starts the runtime in a worker. `signal` ends it at any time. Threads that do not start in time
   * are left out, as in Octet: a browser may refuse to start workers in a worker.
   *
   * @param {{ name: string, size: number }} provider
   * @param {number} threads
   * @param {AbortSignal} signal
   * @returns {Promise<Runtime>}
   */
  static async start(provider, threads, signal) {
    const runtime = new Runtime(provider.name);
    signal.addEventListener('abort', () => runtime.end('The check was stopped.'), { once: true });
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let late;
    let threaded = false;
    runtime.onStage = (stage) => {
      clearTimeout(late);
      threaded ||= stage === 'threads';
      if (stage === 'loaded' && threads > 1) late = setTimeout(() => runtime.end('The threads did not start.'), startup * provider.size);
    };
    try {
      return Object.assign(runtime, await runtime.#call('start', { provider: provider.name, threads }));
    } catch (error) {
      runtime.end('The runtime did not start.');
      if (threads > 1 && !threaded && !signal.aborted) return await Runtime.start(provider, 1, signal);
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  /** @param {string} call @param {Record<string, unknown>} args @returns {Promise<any>} */
  #call(call, args) {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(new Error(this.#ended));
      const id = this.#next++;
      this.#pending.set(id, { resolve, reject });
      this.worker.postMessage({ id, call, args });
    });
  }

  /**
   * Loads a model.
   *
   * @param {Blob} file
   * @param {NamedFile[]} [data] its files of external data
   * @returns {Promise<RuntimeSession>}
   */
  async create(file, data = []) {
    const key = this.#next++;
    const loadTime = await this.#call('create', { key, file, data });
    return {
      key,
      loadTime,
      run: (inputs) => this.#call('run', { key, inputs }),
      close: () => this.#call('close', { key }),
    };
  }

  /**
   * Times of some sessions, run in turn.
   *
   * @param {RuntimeSession[]} some
   * @param {InputTensor[]} inputs
   * @param {{ runs: number, warmUp: number }} how
   * @returns {Promise<number[][]>}
   */
  time(some, inputs, how) {
    return this.#call('time', { keys: some.map(({ key }) => key), inputs, ...how });
  }

  /** The verbose log of a load. @param {Blob} file @param {NamedFile[]} [data] @returns {Promise<string[]>} */
  log(file, data = []) {
    return this.#call('log', { file, data });
  }

  /** Ends the worker; pending calls fail with this reason. @param {string} why */
  end(why) {
    this.#ended = why;
    this.worker.terminate();
    for (const { reject } of this.#pending.values()) reject(new Error(why));
    this.#pending.clear();
  }
}

/**
 * @typedef {object} RuntimeSession a model that the runtime has loaded
 * @property {number} key
 * @property {number} loadTime in milliseconds
 * @property {(inputs: InputTensor[]) => Promise<OutputTensor[]>} run
 * @property {() => Promise<void>} close
 */
