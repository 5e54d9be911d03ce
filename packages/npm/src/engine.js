// @ts-check
/** The engine that all calls of the package share. */

import { setFolder } from './environment.js';
import { Octet } from '../../../www/octet.js';

/** @type {Promise<Octet> | undefined} */
let shared;

/**
 * Options of the shared engine; they hold if they are set before the first call.
 *
 * @typedef {object} EngineOptions
 * @property {number} [threads] as many as there are cores where none is given
 * @property {'threads' | 'baseline'} [variant] the build, instead of the one that fits
 * @property {string | URL} [folder] address of the package's folder `dist`, with a slash at the end, for a bundler that does not copy its files
 */

/**
 * Starts the engine, which otherwise starts with the first call.
 *
 * @param {EngineOptions} [options]
 * @returns {Promise<Octet>}
 */
export function startEngine({ folder, ...options } = {}) {
  if (folder) setFolder(folder);
  const starting = (shared ??= Octet.start(options));
  // The next call tries again.
  starting.catch(() => (shared === starting ? (shared = undefined) : undefined));
  return starting;
}

/** Ends the engine and frees its memory. The next call starts another. */
export async function stopEngine() {
  const engine = shared;
  shared = undefined;
  (await engine?.catch(() => undefined))?.close();
}
