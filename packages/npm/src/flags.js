// @ts-check
/** Flags of V8 that the wasm needs in Node. */

import v8 from 'node:v8';

/** A module with one function that uses `i8x16.relaxed_swizzle`. */
const usesRelaxedSimd = new Uint8Array([
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x01, 0x04, 0x01, 0x60, 0x00, 0x00, 0x03, 0x02, 0x01, 0x00,
  0x0a, 0x10, 0x01, 0x0e, 0x00, 0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f, 0xfd, 0x80, 0x02, 0x1a, 0x0b,
]);

/**
 * Sets what Node 20 needs before it compiles the wasm: relaxed SIMD is behind a flag, and the
 * baseline compiler of its V8 (11.3) makes threads wait for ever. Without that compiler a function
 * is optimized at its first call, which takes longer. Node 22 needs neither.
 *
 * @param {{ threads?: boolean }} [use] `threads`: false where none are started
 */
export function prepareNode({ threads = true } = {}) {
  if (WebAssembly.validate(usesRelaxedSimd)) return;
  v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
  if (!threads) return;
  for (const flag of ['--no-liftoff', '--wasm-lazy-compilation']) v8.setFlagsFromString(flag);
}

/** Compiles functions at their first call, so that a short command starts at once. */
export function compileLazily() {
  for (const flag of ['--wasm-lazy-compilation', '--wasm-lazy-validation']) v8.setFlagsFromString(flag);
}
