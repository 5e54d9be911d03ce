// @ts-check
/**
 * An open model: everything that is done with it, from its samples to the quantized file. octet.js
 * opens models and exports the class.
 */

import { OctetError, unlessAborted } from './engine.js';
import { namedFile } from './files.js';
import { defaultMethod, equalizes, needsMoments, needsSamples } from './settings-document.js';

/** @import { CalibrateOptions, Calibration, ModelSummary, ChannelRanges, CompareOptions, Comparison, Decoded, ValueDistribution, ElementType, Forecast, ForecastOptions, GraphView, ImageSettings, InputTensor, UnusableSample, NamedFile, ObserveOptions, OutputTensor, Progress, RangeFileSummary, RangeFormat, Settings, Result, Run, RunOptions, SampleAnswer, SampleSettings, SearchOptions, SearchOutcome, SharedStatistics, SnippetKind, WrittenRanges } from './types.js' */
/** @import { CallOptions, Engine } from './engine.js' */

/** An open model. It outlives the worker: the file is kept and opened again when needed. */
export class Model {
  #current;
  #key;
  #blob;
  /** @type {NamedFile[]} */
  #attached = [];
  /** @type {Engine | null} */
  #home = null;
  /** @type {Engine | null} */
  #calibrated = null;

  /**
   * @param {() => Promise<Engine>} current the current worker; it may be another one at each call
   * @param {number} key
   * @param {string} name
   * @param {Blob} blob
   */
  constructor(current, key, name, blob) {
    this.#current = current;
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
    const engine = await unlessAborted(this.#current(), options.signal);
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
   * Decodes the first sample into the tensors that the model is run on, for a run elsewhere.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {SampleSettings} [settings]
   * @returns {Promise<OutputTensor[]>}
   */
  async tensors(samples, settings = {}) {
    return (await this.worker()).call('tensors', { key: this.#key, files: samples.map(namedFile), settings });
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
   * The rows of a table as samples: a file for each, spread evenly over the table.
   *
   * @param {File | NamedFile} table
   * @returns {Promise<NamedFile[]>}
   */
  async tableRows(table) {
    return (await this.worker()).call('tableRows', { key: this.#key, file: namedFile(table) });
  }

  /**
   * Code that runs a model which was quantized from this one.
   *
   * @param {SnippetKind} kind
   * @param {string} file the name of the quantized model
   * @param {ImageSettings | null} [image] preprocessing of images, in place of the proposed one
   * @returns {Promise<string>}
   */
  async snippet(kind, file, image = null) {
    return (await this.worker()).call('snippet', { key: this.#key, kind, file, image });
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
    const { method = 'auto', rounding, equalize, tuning, journal, samples: reading = {}, signal, enough } = options;
    const engine = await this.worker({ signal, onProgress });
    this.#calibrated = null;
    const args = { key: this.#key, files: samples.map(namedFile), method, rounding, equalize, tuning, journal, samples: reading };
    const summary = await engine.call('calibrate', args, { signal, enough, onProgress });
    this.#calibrated = engine;
    return summary;
  }

  /**
   * Content of files of statistics together. Fails if they do not belong to this model, or together.
   *
   * @param {(File | NamedFile)[]} statistics files that `observe` or the command line wrote
   * @returns {Promise<SharedStatistics>}
   */
  async statistics(statistics) {
    return (await this.worker()).call('readStatistics', { key: this.#key, statistics: statistics.map(namedFile), data: this.#attached });
  }

  /**
   * Calibrates with statistics in place of samples. The samples that they are from stay where they
   * are.
   *
   * @param {(File | NamedFile)[]} statistics
   * @param {Settings} [settings] those that `quantize` will get
   * @param {CallOptions} [options]
   * @returns {Promise<Calibration>}
   */
  async calibrateByStatistics(statistics, settings = {}, options = {}) {
    const engine = await this.worker(options);
    this.#calibrated = null;
    const args = { key: this.#key, statistics: statistics.map(namedFile), data: this.#attached, settings };
    const summary = await engine.call('calibrateByStatistics', args, options);
    this.#calibrated = engine;
    return summary;
  }

  /**
   * Content of a file of ranges: Octet's own, a calibration table of ONNX Runtime or TensorRT, or
   * encodings of AIMET. Its `tensors` are settings, which the caller adds to those of `quantize`.
   * @param {File | NamedFile} ranges @returns {Promise<RangeFileSummary>}
   */
  async readRanges(ranges) {
    return (await this.worker()).call('readRanges', { key: this.#key, file: namedFile(ranges) });
  }

  /** Takes the ranges of a file in place of a calibration. @param {File | NamedFile} ranges @param {CallOptions} [options] @returns {Promise<Calibration>} */
  async calibrateByRanges(ranges, options = {}) {
    const engine = await this.worker(options);
    this.#calibrated = null;
    const summary = await engine.call('calibrateByRanges', { key: this.#key, file: namedFile(ranges) }, options);
    this.#calibrated = engine;
    return summary;
  }

  /** The ranges of a result of this model as a file for another tool. @param {RangeFormat} format @param {Pick<Result, 'ranges' | 'file'>} result @returns {Promise<WrittenRanges>} */
  async writeRanges(format, { ranges, file }) {
    return (await this.worker()).call('writeRanges', { key: this.#key, format, ranges, quantized: file });
  }

  /**
   * Runs samples and returns what they showed as a file of statistics. It holds no sample, and the
   * calibration stays as it is.
   *
   * @param {(File | NamedFile)[]} samples
   * @param {ObserveOptions} options
   * @param {(progress: Progress) => void} [onProgress]
   * @returns {Promise<Blob>}
   */
  async observe(samples, { source, statistics = [], settings = {}, samples: reading = {}, signal }, onProgress) {
    const engine = await this.worker({ signal, onProgress });
    const args = { name: this.name, blob: this.#blob, files: samples.map(namedFile), source, samples: reading, settings, statistics: statistics.map(namedFile), data: this.#attached };
    return engine.call('observe', args, { signal, onProgress });
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
   * @returns {Promise<Comparison & { answers: SampleAnswer[] }>} `answers`: empty unless they are asked for
   */
  async compare(quantized, data, { samples = {}, labels = {}, split = false, layers = true, answers = false, signal, gently } = {}, onProgress) {
    const engine = await this.worker({ signal, onProgress });
    const blob = quantized instanceof Blob ? quantized : new Blob([quantized]);
    const args = { key: this.#key, quantized: blob, files: data.map(namedFile), samples, labels, split, layers, answers };
    return engine.call('compare', args, { signal, gently, onProgress });
  }

  /**
   * Searches the bits of each tensor under a budget. One half of the samples calibrates and chooses,
   * the other verifies.
   *
   * @param {(File | NamedFile)[]} data
   * @param {SearchOptions} options
   * @param {(progress: Progress) => void} [onProgress]
   * @returns {Promise<SearchOutcome>}
   */
  async search(data, { samples = {}, labels = {}, settings = {}, signal, gently, ...options }, onProgress) {
    const engine = await this.worker({ signal, onProgress });
    /** @type {import('./types.js').Rounding} */
    const rounding = needsMoments(settings) ? 'gptq' : 'nearest';
    const calibration = { method: settings.method ?? defaultMethod, rounding, equalize: equalizes(settings) };
    const args = { key: this.#key, name: this.name, blob: this.#blob, attached: this.#attached, files: data.map(namedFile), samples, labels, settings, calibration, options };
    return engine.call('search', args, { signal, gently, onProgress });
  }

  /**
   * The settings of a point of the last search's curve.
   *
   * @param {number} point
   * @returns {Promise<Settings>}
   */
  async searchSettings(point) {
    return (await this.worker()).call('searchSettings', { key: this.#key, point });
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
