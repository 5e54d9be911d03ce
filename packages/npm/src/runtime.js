// @ts-check
/** The runtime alone: models that run many times, float or quantized. */

import { startEngine } from './engine.js';

export { OctetError } from '../../../www/octet.js';
export { startEngine, stopEngine } from './engine.js';

/** @import { NamedFile } from '../../../www/types.js' */
/** @import { InferenceSession } from '../../../www/inference-session.js' */

/**
 * Opens a model to be run many times. Its plan is made at the first run of each set of shapes and
 * kept; results are moved from the worker, not copied.
 *
 *     const session = await createSession(bytes);
 *     const { output } = await session.run({ input: { shape: [1, 3, 224, 224], data } });
 *
 * @param {Uint8Array<ArrayBuffer> | Blob} model
 * @param {{ name?: string, data?: NamedFile[] }} [options] `data`: files of external data
 * @returns {Promise<InferenceSession>}
 */
export async function createSession(model, options = {}) {
  return (await startEngine()).createSession(model, options);
}
