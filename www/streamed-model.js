// @ts-check
/** A model of any size that is converted piece by piece. It outlives the worker, as `Model` does. */

import { unlessAborted } from './engine.js';
import { baseName } from './files.js';

/** @import { ModelSummary, NamedFile, Place, Progress, Settings, StreamedFiles } from './types.js' */
/** @import { PlannedStream } from './calls.js' */
/** @import { CallOptions, Engine } from './engine.js' */

/** @typedef {{ settings: Settings, limit: number, place: Place }} StreamedChoice */

/** The greatest size of a file of weights: transformers.js and browsers load files of up to 2 GB. */
export const chunk = 2000 * 2 ** 20;

/** Time in milliseconds that a stopped conversion has to finish its writes and its journal. */
const patience = 3000;

export class StreamedModel {
  #engine;
  #key;
  #file;
  /** @type {NamedFile[]} */
  #attached = [];
  /** @type {Engine | null} */
  #home = null;

  /** @param {() => Promise<Engine>} engine @param {number} key @param {NamedFile} file @private */
  constructor(engine, key, file) {
    this.#engine = engine;
    this.#key = key;
    this.#file = { path: baseName(file.path), blob: file.blob };
    this.name = this.#file.path;
    /** @type {string[]} the files of weights that the model names */
    this.wanted = [];
    /** @type {ModelSummary | null} known once all files of weights are there */
    this.card = null;
  }

  /**
   * @param {() => Promise<Engine>} engine
   * @param {number} key
   * @param {NamedFile} file
   * @param {CallOptions} options
   */
  static async open(engine, key, file, options) {
    const model = new StreamedModel(engine, key, file);
    await model.#worker(options);
    if (model.wanted.length === 0) await model.attach([], options);
    return model;
  }

  /** The worker that holds this model. @param {CallOptions} options @returns {Promise<Engine>} */
  async #worker(options = {}) {
    const engine = await unlessAborted(this.#engine(), options.signal);
    if (this.#home === engine && engine.alive) return engine;
    const { wanted } = await engine.call('openStreamed', { key: this.#key, file: this.#file }, options);
    this.wanted = wanted;
    if (this.card) await engine.call('attachStreamed', { key: this.#key, files: this.#attached }, options);
    this.#home = engine;
    return engine;
  }

  /** The names of the files that are missing among these. @param {NamedFile[]} files */
  missing(files) {
    return this.wanted.filter((name) => !files.some(({ path }) => baseName(path) === baseName(name)));
  }

  /**
   * Names the files of weights and reads the small constants. A missing or short file is an error.
   *
   * @param {NamedFile[]} files
   * @param {CallOptions} [options]
   */
  async attach(files, options = {}) {
    const engine = await this.#worker(options);
    const named = this.wanted.flatMap((path) => {
      const file = files.find((one) => one.path === path) ?? files.find((one) => baseName(one.path) === baseName(path));
      return file ? [{ path, blob: file.blob }] : [];
    });
    try {
      const { card } = await engine.call('attachStreamed', { key: this.#key, files: named }, options);
      this.#attached = named;
      this.card = card;
    } catch (error) {
      // The worker has the graph no more in every case.
      this.#home = null;
      throw error;
    }
  }

  /**
   * Plans a conversion, and looks for an earlier one at its place, if there is one.
   *
   * @param {Omit<StreamedChoice, 'place'> & { place: Place | null }} choice
   * @param {CallOptions} [options]
   * @returns {Promise<PlannedStream>}
   */
  async plan({ settings, limit, place }, options = {}) {
    return (await this.#worker(options)).call('planStreamed', { key: this.#key, settings, limit, place }, options);
  }

  /**
   * Converts the model. If it is stopped, what was made stays and can be gone on with.
   *
   * @param {StreamedChoice & { resume?: boolean }} choice
   * @param {CallOptions} [options]
   * @param {(progress: Progress) => void} [onProgress]
   * @returns {Promise<StreamedFiles>}
   */
  async convert({ settings, limit, place, resume = false }, options = {}, onProgress) {
    const engine = await this.#worker({ ...options, onProgress });
    return engine.call('convert', { key: this.#key, settings, limit, place, resume }, { ...options, onProgress, patience });
  }

  /** Removes what a conversion has made. @param {StreamedChoice} choice */
  async discard({ settings, limit, place }) {
    await (await this.#worker()).call('discardStreamed', { key: this.#key, settings, limit, place });
  }

  /** Frees the worker's memory of this model. */
  async close() {
    const home = this.#home;
    this.#home = null;
    if (home?.alive) await home.call('closeStreamed', { key: this.#key });
  }
}
