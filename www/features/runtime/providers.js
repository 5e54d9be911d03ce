// @ts-check
/** The ways in which onnxruntime-web runs a model, and why this browser lacks one of them. */

/**
 * `missing`: why it can't be tried here; empty if it can. `note`: what a reader of its row has to
 * know.
 *
 * @typedef {{ name: string, title: string, note: string, missing: () => Promise<string> }} Provider
 */

/** @type {Provider[]} */
export const providers = [
  { name: 'wasm', title: 'WASM', note: '', missing: async () => '' },
];
