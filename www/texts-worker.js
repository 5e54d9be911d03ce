// @ts-check
/** Texts in the worker: the tokenizers are a wasm module of their own, loaded with the first text. */

import { loadTokenizers } from './builds.js';

/** @import { NamedFile, TokenizedTexts } from './types.js' */
/** @import { Arguments } from './calls.js' */

/**
 * Makes a sample of each text.
 *
 * @param {Arguments<'tokenize'>} args
 * @param {Record<string, string> | undefined} wasmFiles addresses of the wasm files
 * @returns {Promise<TokenizedTexts>}
 */
export async function tokenize({ texts, tokenizer, config, settings, length }, wasmFiles) {
  const { Tokenizer } = await loadTokenizers(wasmFiles);
  const bytes = async (/** @type {NamedFile} */ { blob }) => new Uint8Array(await blob.arrayBuffer());
  const made = new Tokenizer(tokenizer.path, await bytes(tokenizer), config?.path ?? '', config ? await bytes(config) : undefined);
  /** @type {NamedFile[]} */
  const files = [];
  const notes = [];
  try {
    for (const file of texts) {
      const { texts: all, cut, samples } = made.tokenize(file.path, await bytes(file), settings, length ?? undefined);
      files.push(...samples.map((/** @type {{ path: string, bytes: Uint8Array<ArrayBuffer> }} */ one) => ({ path: one.path, blob: new Blob([one.bytes]) })));
      if (samples.length < all) notes.push(`${file.path}: ${samples.length} of ${all} texts are used, spread evenly over the file.`);
      if (cut > 0) notes.push(`${file.path}: ${cut} of ${samples.length} texts are cut at the maximum length.`);
    }
  } finally {
    made.free();
  }
  return { files, notes };
}
