// @ts-check
/**
 * The JavaScript API of Octet: everything that the page can do, independent of the page.
 *
 *     import { Octet } from './www/octet.js';
 *     const octet = await Octet.start();
 *     const model = await octet.open(file);
 *     await model.calibrate(samples, { method: 'auto' }, console.log);
 *     const { model: bytes, report, summary } = await model.quantize({ activations: { type: 'u8' } });
 *
 * All work happens in a worker. Every long call takes an `AbortSignal` and ends with an
 * `AbortError` within a fraction of a second after it fires. If a call can't be stopped in time, or
 * a worker dies, the worker is lost but not the model: the next call starts another worker and
 * opens the file again.
 */

import { detect } from './capabilities.js';
import { aborted, Engine, OctetError, unlessAborted } from './engine.js';
import { baseName, namedFile } from './files.js';
import { InferenceSession } from './inference-session.js';
import { Model } from './model.js';

/** @import { GraphView, ImageSettings, InputTensor, Memory, NamedFile, Run, RunOptions, SampleRef, SeenValue, TextSettings, TokenizedTexts } from './types.js' */
/** @import { Capabilities } from './capabilities.js' */
/** @import { CallOptions, CompiledWasm } from './engine.js' */

export { Model, OctetError, unlessAborted };

/** Starts workers and opens models. */
export class Octet {
  /** @type {Engine} */
  #engine;
  #threads;
  #onOneThread;
  #compiled;
  #keys = 1;

  /**
   * @param {Capabilities} capabilities
   * @param {number} threads
   * @param {((why: string) => void) | undefined} onOneThread
   * @param {CompiledWasm | undefined} compiled
   * @private
   */
  constructor(capabilities, threads, onOneThread, compiled) {
    /** Capabilities of this browser, with reasons. */
    this.capabilities = capabilities;
    this.#threads = threads;
    this.#onOneThread = onOneThread;
    this.#compiled = compiled;
    this.#engine = this.#begin(threads);
  }

  /**
   * Selects the build for this browser and starts the worker.
   *
   * @param {object} [options]
   * @param {number} [options.threads] as many as there are cores where none is given
   * @param {'threads' | 'baseline'} [options.variant]
   * @param {(why: string) => void} [options.onOneThread] hears that several threads were wanted and did not start; set `threads` to try again
   * @param {CompiledWasm} [options.compiled] gives the compiled wasm, if it is shared with other engines
   * @returns {Promise<Octet>}
   */
  static async start({ threads, variant, onOneThread, compiled } = {}) {
    const detected = detect();
    if (!detected.variant) throw new OctetError({ kind: 'load', message: detected.reason });
    const capabilities = variant && variant !== detected.variant
      ? { ...detected, variant, reason: `The ${variant} build was requested.`, threads: variant === 'baseline' ? 1 : detected.threads }
      : detected;
    const octet = new Octet(capabilities, clamp(threads ?? capabilities.threads, capabilities.threads), onOneThread, compiled);
    await octet.engine();
    return octet;
  }

  /** @param {number} threads */
  #begin(threads) {
    return new Engine(this.capabilities.variant ?? 'baseline', threads, this.#compiled);
  }

  /** Number of threads. Setting it ends the worker; the next call starts another. */
  get threads() {
    return this.#threads;
  }

  set threads(count) {
    const wanted = clamp(count, this.capabilities.threads);
    if (wanted === this.#threads) return;
    this.#threads = wanted;
    this.#engine.end(aborted());
  }

  /**
   * The current worker, restarted if it has ended. If several threads did not start, one thread is
   * used.
   *
   * @returns {Promise<Engine>}
   */
  async engine() {
    if (!this.#engine.alive) this.#engine = this.#begin(this.#threads);
    const engine = this.#engine;
    try {
      await engine.started;
      return engine;
    } catch (error) {
      if (!(error instanceof OctetError) || error.kind !== 'threads') throw error;
      if (this.#engine === engine) {
        this.#threads = 1;
        this.#engine = this.#begin(1);
        this.#onOneThread?.(error.message);
      }
      return this.engine();
    }
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
    const model = new Model(() => this.engine(), this.#keys++, called, blob);
    await model.worker(options);
    return model;
  }

  /**
   * Opens a model of any size, to be converted piece by piece. Its weights stay in their files.
   *
   * @param {File | NamedFile} file
   * @param {CallOptions} [options]
   * @returns {Promise<import('./streamed-model.js').StreamedModel>}
   */
  async openStreamed(file, options = {}) {
    const { StreamedModel } = await import('./streamed-model.js');
    return StreamedModel.open(() => this.engine(), this.#keys++, namedFile(file), options);
  }

  /**
   * Runs a model, float or quantized, on one sample and returns the time of each layer.
   *
   * @param {File | Blob | Uint8Array<ArrayBuffer>} model
   * @param {(File | NamedFile)[] | InputTensor[]} sample the files of one sample, or a tensor for each input
   * @param {RunOptions} [options]
   * @returns {Promise<Run>}
   */
  async run(model, sample, options = {}) {
    const opened = await this.open(model, { signal: options.signal });
    try {
      return await opened.run(sample, options);
    } finally {
      await opened.close().catch(() => {});
    }
  }

  /**
   * Groups files into samples, in the order in which they are used.
   *
   * @param {string[]} paths
   * @returns {Promise<SampleRef[]>}
   */
  async group(paths) {
    return (await this.engine()).call('group', { paths });
  }

  /**
   * Tokenizes files of texts. Each text becomes a file that is a sample of a text model.
   *
   * @param {(File | NamedFile)[]} texts .txt, .jsonl or .csv
   * @param {(File | NamedFile)[]} tokenizer tokenizer.json, and tokenizer_config.json if there is one
   * @param {TextSettings} [settings]
   * @param {number | null} [length] number of tokens that the model takes, if it is fixed: `card.texts.length`
   * @returns {Promise<TokenizedTexts>}
   */
  async tokenize(texts, tokenizer, settings = {}, length = null) {
    const files = tokenizer.map(namedFile);
    const config = files.find(({ path }) => baseName(path) === 'tokenizer_config.json') ?? null;
    const json = files.find((file) => file !== config);
    if (!json) throw new OctetError({ kind: 'sample', message: 'The tokenizer.json of the model is missing.' });
    return (await this.engine()).call('tokenize', { texts: texts.map(namedFile), tokenizer: json, config, settings, length });
  }

  /**
   * Opens a model to be run many times. It is planned at the first run of each set of shapes.
   *
   * @param {File | Blob | Uint8Array<ArrayBuffer>} file
   * @param {{ name?: string, data?: NamedFile[] }} [options] `data`: files of external data
   * @returns {Promise<InferenceSession>}
   */
  async createSession(file, { name = 'model.onnx', data = [] } = {}) {
    const blob = file instanceof Blob ? file : new Blob([file]);
    return InferenceSession.open(await this.engine(), this.#keys++, { name, blob, data });
  }

  /** Presets of image settings, by name. @returns {Promise<Record<string, ImageSettings>>} */
  async presets() {
    return (await this.engine()).call('presets', {});
  }

  /**
   * The graph of a model file, float or quantized.
   *
   * @param {Blob} blob
   * @returns {Promise<GraphView>}
   */
  async graphOf(blob) {
    return (await this.engine()).call('graphOf', { blob });
  }

  /**
   * A model file with further values as outputs.
   *
   * @param {Blob} blob
   * @param {string[]} values
   * @returns {Promise<Blob>}
   */
  async withOutputs(blob, values) {
    return (await this.engine()).call('withOutputs', { blob, values });
  }

  /**
   * The nodes between values that were seen in a run and `outputs`, as a model file of its own.
   *
   * @param {Blob} blob
   * @param {SeenValue[]} inputs
   * @param {string[]} outputs
   * @returns {Promise<Blob>}
   */
  async excerpt(blob, inputs, outputs) {
    return (await this.engine()).call('excerpt', { blob, inputs, outputs });
  }

  /**
   * Runs `work` as a step of its own in the reports of all open models.
   *
   * @template T
   * @param {string} message
   * @param {() => T | Promise<T>} work
   * @returns {Promise<T>}
   */
  async scope(message, work) {
    await (await this.engine()).call('beginScope', { message });
    try {
      return await work();
    } finally {
      // If the worker has ended meanwhile, the scope has ended with it.
      if (this.#engine.alive) await this.#engine.call('endScope', {});
    }
  }

  /** Memory of the engine. @returns {Promise<Memory>} */
  async memory() {
    return (await this.engine()).call('memory', {});
  }

  /** Ends the worker permanently. */
  close() {
    this.#engine.end(aborted());
  }
}

/** @param {number} count @param {number} most */
function clamp(count, most) {
  return Math.max(1, Math.min(Math.floor(count) || 1, Math.max(1, most)));
}
