// @ts-check
/**
 * The surroundings of the engine: how its worker starts, and where files and capabilities come
 * from. The npm package has other versions of this file, for bundlers and for Node
 * (packages/npm/src).
 */

/** Starts the worker of the engine. @returns {Worker} */
export const startWorker = () => new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'octet' });

/** Addresses of the wasm files, by variant; without them the worker finds its own. @returns {Record<string, string> | undefined} */
export const files = () => undefined;

/** True if threads may share memory. */
export const isIsolated = () => globalThis.crossOriginIsolated === true;

/** Number of processors. */
export const processors = () => navigator.hardwareConcurrency || 1;
