// The tokenizers' module for the command line. The worker that runs a command sets how it loads.

/** @param {string} path @param {Uint8Array} bytes @param {string} configPath @param {Uint8Array | undefined} config */
export function create(path, bytes, configPath, config) {
  const { Tokenizer } = /** @type {any} */ (globalThis).octetTokenizers();
  // The bytes are views of shared memory, which the tokenizers' module does not take.
  return new Tokenizer(path, bytes.slice(), configPath, config);
}
