// @ts-check
/**
 * A model that runs many times in the worker. The worker keeps its plan; results are moved, not
 * copied.
 */

/** @import { Elements, InputTensor, ModelSummary, NamedFile, OutputTensor } from './types.js' */
/** @import { Engine } from './engine.js' */

/** An open model with the plans of its runs. It ends with its worker. */
export class InferenceSession {
  #engine;
  #key;

  /** @param {Engine} engine @param {number} key @param {ModelSummary} card @private */
  constructor(engine, key, card) {
    this.#engine = engine;
    this.#key = key;
    /** The summary of the model, with its inputs and outputs. */
    this.card = card;
  }

  /**
   * @param {Engine} engine
   * @param {number} key
   * @param {{ name: string, blob: Blob, data: NamedFile[] }} model
   */
  static async open(engine, key, model) {
    return new InferenceSession(engine, key, await engine.call('openInference', { key, ...model }));
  }

  /**
   * Runs the model once.
   *
   * @param {InputTensor[] | Record<string, { shape: number[], data: Elements }>} inputs a tensor for each input
   * @returns {Promise<Record<string, OutputTensor>>} the outputs by name
   */
  async run(inputs) {
    const named = Array.isArray(inputs) ? inputs : Object.entries(inputs).map(([name, { shape, data }]) => ({ name, shape, data }));
    const outputs = await this.#engine.call('infer', { key: this.#key, inputs: named });
    return Object.fromEntries(outputs.map((output) => [output.name, output]));
  }

  /** Frees the model. */
  async close() {
    if (this.#engine.alive) await this.#engine.call('closeInference', { key: this.#key });
  }
}
