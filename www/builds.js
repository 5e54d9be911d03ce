// @ts-check
/**
 * The wasm builds for the worker. The npm package has another version of this file, in which the
 * modules are part of the worker (packages/npm/src/builds.js).
 */

import { absent } from './capabilities.js';

/** @typedef {typeof import('../pkg/threads/octet.js')} Wasm */
/** @typedef {typeof import('../pkg/tokenizer/tokenizer.js')} Tokenizers */

/**
 * Loads a build of the engine.
 *
 * @param {'threads' | 'baseline'} variant
 * @param {Record<string, string>} [_files] for the package
 * @param {WebAssembly.Module} [compiled] the wasm, if another studio of the same page has compiled it
 * @returns {Promise<Wasm>}
 */
export async function loadEngine(variant, _files, compiled) {
  const folder = new URL(`../pkg/${variant}/`, import.meta.url);
  const script = new URL('octet.js', folder).href;
  const module = /** @type {Wasm} */ (await import(script).catch(async (cause) => {
    const answer = await fetch(script, { method: 'HEAD' }).catch(() => null);
    throw answer?.status === 404 ? Object.assign(new Error(absent(variant)), { kind: 'load' }) : cause;
  }));
  await module.default({ module_or_path: compiled ?? new URL('octet_bg.wasm', folder) });
  return module;
}

/**
 * Loads the tokenizers.
 *
 * @param {Record<string, string>} [_files] for the package
 * @returns {Promise<Tokenizers>}
 */
export async function loadTokenizers(_files) {
  const folder = new URL('../pkg/tokenizer/', import.meta.url);
  const module = await import(new URL('tokenizer.js', folder).href);
  await module.default({ module_or_path: new URL('tokenizer_bg.wasm', folder) });
  return module;
}
