// @ts-check
/**
 * The thread pool, in place of the helper of wasm-bindgen-rayon: a thread starts from the file of
 * the worker itself, under whatever name a bundler gave it.
 */

/** The name of a worker that is a thread of the pool. */
export const poolName = 'octet-pool';

/** The workers; a reference keeps Firefox from collecting them. @type {Worker[]} */
let threads = [];

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
    const thread = new Worker(self.location.href, { type: 'module', name: poolName });
    thread.addEventListener('message', () => ready(thread), { once: true });
    thread.addEventListener('error', (event) => failed(new Error(event.message || 'a thread did not start')), { once: true });
    thread.postMessage({ module, memory, receiver });
  });
  threads = await Promise.all(Array.from({ length: builder.numThreads() }, start));
  builder.build();
}

/**
 * Makes this worker a thread of the pool.
 *
 * @param {() => Promise<{ default: Function, wbg_rayon_start_worker(receiver: number): void }>} load
 */
export function serve(load) {
  const once = { once: true };
  self.addEventListener('message', async ({ data: { module, memory, receiver } }) => {
    const wasm = await load();
    await wasm.default({ module_or_path: module, memory });
    self.postMessage('ready');
    wasm.wbg_rayon_start_worker(receiver);
  }, once);
}
