// @ts-check
/**
 * Octet for JavaScript: quantize ONNX models with your own data.
 *
 *     import { openModel } from 'octet-onnx';
 *     const model = await openModel(bytes);
 *     const { model: quantized, report } = await model.quantize({}, samples);
 *
 * All work happens in a worker that the calls share. `startEngine` chooses its threads.
 */

import { equalizes, needsMoments, needsSamples, passOf, takesSamples, tunes } from '../../../www/settings-document.js';
import { startEngine } from './engine.js';
import { sampleFiles } from './samples.js';

export { Octet, OctetError } from '../../../www/octet.js';
export { createSession } from './runtime.js';
export { startEngine, stopEngine } from './engine.js';

/** @import { Comparison, ModelSummary, NamedFile, Progress, Result, Run, SampleSettings, Settings } from '../../../www/types.js' */
/** @import { Model } from '../../../www/octet.js' */
/** @import { Sample } from './samples.js' */

/**
 * @typedef {object} OpenOptions
 * @property {string} [name] name of the file, for the report
 * @property {NamedFile[]} [data] files of external data
 * @property {AbortSignal} [signal]
 */

/**
 * @typedef {object} QuantizeOptions
 * @property {string} [method] the calibration method, such as `minmax` or `percentile:99.99`; default: `auto`
 * @property {SampleSettings} [samples] how the samples are read
 * @property {(progress: Progress) => void} [onProgress]
 * @property {AbortSignal} [signal]
 */

/** An open model. */
export class OpenModel {
  #model;

  /** @param {Model} model from `openModel` */
  constructor(model) {
    this.#model = model;
  }

  /** What the model contains, and how much of it can be quantized. @returns {ModelSummary} */
  get summary() {
    return this.#model.card;
  }

  /**
   * Quantizes the model. Schemes that need no samples take none.
   *
   * @param {Settings} [settings]
   * @param {Iterable<Sample>} [samples]
   * @param {QuantizeOptions} [options]
   * @returns {Promise<Result>}
   */
  async quantize(settings = {}, samples = [], { method, samples: reading, onProgress, signal } = {}) {
    const files = takesSamples(settings) ? this.#files(samples) : [];
    if (needsSamples(settings) || files.length > 0) {
      await this.#model.calibrate(files, {
        method: method ?? passOf(settings),
        rounding: needsMoments(settings) ? 'gptq' : 'nearest',
        equalize: equalizes(settings),
        tuning: tunes(settings) ? settings : undefined,
        samples: reading,
        signal,
      }, onProgress);
    }
    return this.#model.quantize(settings, { signal, onProgress });
  }

  /**
   * Compares a model that was quantized from this one with it: the error of each output and layer.
   *
   * @param {Blob | Uint8Array<ArrayBuffer>} quantized
   * @param {Iterable<Sample>} samples
   * @param {Omit<QuantizeOptions, 'method'>} [options]
   * @returns {Promise<Comparison>}
   */
  compare(quantized, samples, { samples: reading, onProgress, signal } = {}) {
    return this.#model.compare(quantized, this.#files(samples), { samples: reading, signal }, onProgress);
  }

  /**
   * Runs the model on one sample several times and returns the time of each layer.
   *
   * @param {Sample} sample
   * @param {import('../../../www/types.js').RunOptions} [options]
   * @returns {Promise<Run>}
   */
  profile(sample, options) {
    return this.#model.run(this.#files([sample]), options);
  }

  /**
   * Random samples that fit the model, for trying things out. Ranges from them are useless for real
   * data.
   *
   * @param {number} count
   */
  demoSamples(count) {
    return this.#model.demoSamples(count);
  }

  /** Frees the model. */
  close() {
    return this.#model.close();
  }

  /** @param {Iterable<Sample>} samples */
  #files(samples) {
    return sampleFiles(samples, this.summary.inputs.map(({ name }) => name));
  }
}

/**
 * Opens a float model.
 *
 * @param {Uint8Array<ArrayBuffer> | Blob} bytes
 * @param {OpenOptions} [options]
 * @returns {Promise<OpenModel>}
 */
export async function openModel(bytes, { name, data = [], signal } = {}) {
  const model = await (await startEngine()).open(bytes, { name, signal });
  if (data.length > 0) await model.attach(data, { signal });
  return new OpenModel(model);
}

/**
 * The summary of a model: its inputs, outputs, operators, and how much can be quantized.
 *
 * @param {Uint8Array<ArrayBuffer> | Blob} bytes
 * @param {OpenOptions} [options]
 * @returns {Promise<ModelSummary>}
 */
export async function inspect(bytes, options) {
  const model = await openModel(bytes, options);
  try {
    return model.summary;
  } finally {
    await model.close();
  }
}

/**
 * Compares a quantized model with its float model on samples.
 *
 * @param {Uint8Array<ArrayBuffer> | Blob} float
 * @param {Uint8Array<ArrayBuffer> | Blob} quantized
 * @param {Iterable<Sample>} samples
 * @param {OpenOptions & Omit<QuantizeOptions, 'method'>} [options]
 * @returns {Promise<Comparison>}
 */
export async function compare(float, quantized, samples, options) {
  const model = await openModel(float, options);
  try {
    return await model.compare(quantized, samples, options);
  } finally {
    await model.close();
  }
}
