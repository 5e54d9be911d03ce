// @ts-check
/** The wasm builds for the package's worker: their modules are part of it, their files beside it. */

import * as baseline from '../../../pkg/baseline/octet.js';
import * as threads from '../../../pkg/threads/octet.js';
import * as tokenizer from '../../../pkg/tokenizer/tokenizer.js';

/**
 * Loads a build of the engine.
 *
 * @param {'threads' | 'baseline'} variant
 * @param {Record<string, string>} files addresses of the wasm files
 * @param {WebAssembly.Module} [compiled] the wasm, if another studio of the same page has compiled it
 */
export async function loadEngine(variant, files, compiled) {
  const module = variant === 'threads' ? threads : baseline;
  await module.default({ module_or_path: compiled ?? fetch(files[variant]) });
  return module;
}

/**
 * Loads the tokenizers.
 *
 * @param {Record<string, string>} files addresses of the wasm files
 */
export async function loadTokenizers(files) {
  await tokenizer.default({ module_or_path: fetch(files.tokenizer) });
  return tokenizer;
}
