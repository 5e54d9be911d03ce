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
import { needsSamples } from './settings-document.js';
import { aborted, Engine, OctetError, unlessAborted } from './engine.js';
import { baseName, namedFile } from './files.js';
import { InferenceSession } from './inference-session.js';

/** @import { CalibrateOptions, Calibration, ModelSummary, ChannelRanges, CompareOptions, Comparison, Decoded, ValueDistribution, ElementType, Forecast, ForecastOptions, GraphView, ImageSettings, InputTensor, Memory, UnusableSample, NamedFile, Progress, Settings, Result, Run, RunOptions, SampleRef, SampleSettings, TextSettings, TokenizedTexts } from './types.js' */
/** @import { Capabilities } from './capabilities.js' */
/** @import { CallOptions } from './engine.js' */

export { OctetError, unlessAborted };

/** Starts workers and opens models. */
export class Octet {
  /** @type {Engine} */
  #engine;
  #threads;
  #onOneThread;
  #keys = 1;

  /** @param {Capabilities} capabilities @param {number} threads @param {((why: string) => void) | undefined} onOneThread @private */
  constructor(capabilities, threads, onOneThread) {
    /** Capabilities of this browser, with reasons. */
    this.capabilities = capabilities;
    this.#threads = threads;
    this.#onOneThread = onOneThread;
    this.#engine = this.#begin(threads);
  }

  /**
   * Selects the build for this browser and starts the worker.
   *
   * @param {object} [options]
   * @param {number} [options.threads] as many as there are cores where none is given
   * @param {'threads' | 'baseline'} [options.variant]
   * @param {(why: string) => void} [options.onOneThread] hears that several threads were wanted and did not start; set `threads` to try again
   * @returns {Promise<Octet>}
   */
  static async start({ threads, variant, onOneThread } = {}) {
    const detected = detect();
    if (!detected.variant) throw new OctetError({ kind: 'load', message: detected.reason });
    const capabilities = variant && variant !== detected.variant
      ? { ...detected, variant, reason: `The ${variant} build was requested.`, threads: variant === 'baseline' ? 1 : detected.threads }
      : detected;
    const octet = new Octet(capabilities, clamp(threads ?? capabilities.threads, capabilities.threads), onOneThread);
    await octet.engine();
    return octet;
  }

  /** @param {number} threads */
  #begin(threads) {
    return new Engine(this.capabilities.variant ?? 'baseline', threads);
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
    const model = new Model(this, this.#keys++, called, blob);
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

/** An open model. It outlives the worker: the file is kept and opened again when needed. */
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
    /** @type {ModelSummary} */
    this.card = /** @type {any} */ (null);
    /** @type {string[]} the external data files that are still missing */
    this.wanted = [];
  }

  /**
   * The worker that holds this model; opens the model there if needed.
   *
   * @param {CallOptions} options
   * @returns {Promise<Engine>}
   */
  async worker(options = {}) {
    const engine = await unlessAborted(this.#octet.engine(), options.signal);
    if (this.#home === engine) return engine;
    const opened = await engine.call('open', { key: this.#key, name: this.name, blob: this.#blob }, options);
    this.#home = engine;
    this.#know(opened);
    if (this.#attached.length > 0) {
      this.#know(await engine.call('attach', { key: this.#key, files: this.#attached }, options));
    }
    return engine;
  }

  /** @param {{ card: ModelSummary, wanted: string[] }} opened */
  #know({ card, wanted }) {
    this.card = card;
    this.wanted = wanted;
  }

  /**
   * Attaches the external data files named in `wanted`, all at once.
   *
   * @param {(File | NamedFile)[]} files
   * @param {CallOptions} [options]
   */
  async attach(files, options = {}) {
    const engine = await this.worker(options);
    const named = files.map(namedFile);
    this.#know(await engine.call('attach', { key: this.#key, files: named }, options));
    this.#attached = named;
  }

  /**
   * Decodes the first sample as the model receives it.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {SampleSettings} [settings]
   * @param {CallOptions} [options]
   * @returns {Promise<Decoded>}
   */
  async preview(samples, settings = {}, options = {}) {
    const engine = await this.worker(options);
    return engine.call('preview', { key: this.#key, files: samples.map(namedFile), settings }, options);
  }

  /**
   * Checks samples before a run and returns the unusable ones with reasons.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {SampleSettings} [settings]
   * @returns {Promise<UnusableSample[]>}
   */
  async check(samples, settings = {}) {
    return (await this.worker()).call('check', { key: this.#key, files: samples.map(namedFile), settings });
  }

  /**
   * Random samples that fit the model, for trying Octet out. Ranges calibrated with them are
   * useless for real data: tell the user, and set `demo` in the sample settings for the report.
   *
   * @param {number} count
   * @param {number} [seed]
   * @returns {Promise<NamedFile[]>}
   */
  async demoSamples(count, seed = 0) {
    return (await this.worker()).call('demoSamples', { key: this.#key, count, seed });
  }

  /**
   * Forecasts the cost of calibrating with these samples and quantizing, from the first sample. The
   * prepared model is kept for the calibration.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {ForecastOptions} [options]
   * @returns {Promise<Forecast>}
   */
  async forecast(samples, { method = 'auto', samples: reading = {}, settings = {}, signal } = {}) {
    const engine = await this.worker({ signal });
    const args = { key: this.#key, files: samples.map(namedFile), method, samples: reading, settings };
    return engine.call('forecast', args, { signal });
  }

  /**
   * Runs the samples and collects statistics of every tensor that will be quantized.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {CalibrateOptions} [options]
   * @param {(progress: Progress) => void} [onProgress]
   * @returns {Promise<Calibration>}
   */
  async calibrate(samples, options = {}, onProgress) {
    const { method = 'auto', rounding, equalize, tuning, samples: reading = {}, signal, enough } = options;
    const engine = await this.worker({ signal, onProgress });
    this.#calibrated = null;
    const args = { key: this.#key, files: samples.map(namedFile), method, rounding, equalize, tuning, samples: reading };
    const summary = await engine.call('calibrate', args, { signal, enough, onProgress });
    this.#calibrated = engine;
    return summary;
  }

  /**
   * Creates the quantized model from the calibration; may be called again with other settings.
   *
   * @param {Settings} [settings]
   * @param {CallOptions} [options]
   * @returns {Promise<Result>}
   */
  async quantize(settings = {}, options = {}) {
    const engine = await this.worker(options);
    if (needsSamples(settings) && this.#calibrated !== engine) {
      throw new OctetError({ kind: 'order', message: 'There are no ranges yet: calibrate this model first.' });
    }
    return engine.call('quantize', { key: this.#key, settings }, options);
  }

  /**
   * Runs this model on one sample several times and returns the time of each layer.
   *
   * @param {(File | NamedFile)[] | InputTensor[]} sample the files of one sample, or a tensor for each input
   * @param {RunOptions} [options]
   * @returns {Promise<Run>}
   */
  async run(sample, { runs = 10, warmUp = 2, samples = {}, floatKernels, signal, gently } = {}) {
    const engine = await this.worker({ signal });
    const files = sample.map((one) => ('data' in one ? one : namedFile(one)));
    return engine.call('run', { key: this.#key, sample: files, samples, runs, warmUp, floatKernels }, { signal, gently });
  }

  /**
   * Compares a model that was quantized from this one with it, sample by sample. The report
   * contains the result.
   *
   * @param {Blob | Uint8Array<ArrayBuffer>} quantized
   * @param {(File | NamedFile)[]} data
   * @param {CompareOptions} [options]
   * @param {(progress: Progress) => void} [onProgress]
   * @returns {Promise<Comparison>}
   */
  async compare(quantized, data, { samples = {}, labels = {}, split = false, signal, gently } = {}, onProgress) {
    const engine = await this.worker({ signal, onProgress });
    const blob = quantized instanceof Blob ? quantized : new Blob([quantized]);
    const args = { key: this.#key, quantized: blob, files: data.map(namedFile), samples, labels, split };
    return engine.call('compare', args, { signal, gently, onProgress });
  }

  /**
   * The worker that holds this model, while it lives. Another worker has none of its results.
   *
   * @returns {unknown}
   */
  get home() {
    return this.#home?.alive ? this.#home : null;
  }

  /** True if a calibration is available, so that `quantize` can be called. */
  get calibrated() {
    return this.#calibrated !== null && this.#calibrated === this.#home && this.#calibrated.alive;
  }

  /**
   * The graph that is calibrated and quantized, after preparation.
   *
   * @returns {Promise<GraphView>}
   */
  async graph() {
    return (await this.worker()).call('graph', { key: this.#key });
  }

  /**
   * Statistics of a value, and the ranges that the methods would choose for this type; `null`
   * without statistics.
   *
   * @param {string} value
   * @param {ElementType} [element]
   * @param {boolean} [symmetric]
   * @returns {Promise<ValueDistribution | null>}
   */
  async distribution(value, element = 'u8', symmetric) {
    return (await this.worker()).call('distribution', { key: this.#key, value, element, symmetric });
  }

  /**
   * Minimum and maximum of each channel of a weight; `null` for other constants.
   *
   * @param {string} weight
   * @returns {Promise<ChannelRanges | null>}
   */
  async channels(weight) {
    return (await this.worker()).call('channels', { key: this.#key, weight });
  }

  /** The files of this model, the model file first. @returns {NamedFile[]} */
  get files() {
    return [{ path: this.name, blob: this.#blob }, ...this.#attached];
  }

  /** The report so far, as YAML. @returns {Promise<string>} */
  async report() {
    return (await this.worker()).call('report', { key: this.#key });
  }

  /**
   * Exports the measurements: the table of layers as CSV, a Chrome trace, a speedscope profile,
   * Model Explorer node data, or an HTML page that opens offline.
   *
   * @param {'csv' | 'trace' | 'speedscope' | 'modelExplorer' | 'html'} kind
   * @returns {Promise<string>}
   */
  async export(kind) {
    return (await this.worker()).call('export', { key: this.#key, kind });
  }

  /** Frees the worker's memory of this model. */
  async close() {
    const home = this.#home;
    this.#home = null;
    if (home?.alive) await home.call('close', { key: this.#key });
  }
}

/** @param {number} count @param {number} most */
function clamp(count, most) {
  return Math.max(1, Math.min(Math.floor(count) || 1, Math.max(1, most)));
}
