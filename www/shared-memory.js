// @ts-check
/**
 * The layout of the words in memory shared between wasm threads and the page (`Shared` in
 * `types.d.ts`).
 */

/** Indices into `control`. */
export const slot = { cancel: 0, done: 1, panicked: 2, ended: 3, watching: 4 };
