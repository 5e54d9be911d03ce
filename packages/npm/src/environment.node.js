// @ts-check
/** The surroundings of the engine in Node: worker threads that behave as workers of a page. */

import os from 'node:os';
import { prepareNode } from './flags.js';
import { WebWorker } from './web-worker.js';

prepareNode();

/** @type {string | URL} */
let base = import.meta.url;

/**
 * Sets the folder of the package's files, for a bundler that does not copy them.
 *
 * @param {string | URL} folder its address, with a slash at the end
 */
export function setFolder(folder) {
  base = folder;
}

/** Addresses of the wasm files, by variant. @returns {Record<string, string>} */
export const files = () => Object.fromEntries(['threads', 'baseline', 'tokenizer'].map((name) => [name, new URL(`${name}.wasm`, base).href]));

/** Starts the worker of the engine. @returns {Worker} */
export const startWorker = () => /** @type {any} */ (new WebWorker(new URL('node-worker.js', base), { name: 'octet' }));

/** Threads always share memory here. */
export const isIsolated = () => true;

/** Number of processors. */
export const processors = () => os.availableParallelism?.() ?? os.cpus().length;
