// @ts-check
/** The thread pool of the command line, in place of the helper of wasm-bindgen-rayon. */

import { Worker } from 'node:worker_threads';

/**
 * Starts the threads. wasm calls this.
 *
 * @param {WebAssembly.Module} module
 * @param {WebAssembly.Memory} memory
 * @param {{ numThreads(): number, receiver(): number, build(): void }} builder
 */
export async function startWorkers(module, memory, builder) {
  const receiver = builder.receiver();
  const start = () => new Promise((ready, failed) => {
    const thread = new Worker(new URL(import.meta.url), { workerData: { name: 'pool' } });
    thread.once('message', ready);
    thread.once('error', failed);
    thread.postMessage({ module, memory, receiver });
  });
  await Promise.all(Array.from({ length: builder.numThreads() }, start));
  builder.build();
}
