// @ts-check
/**
 * The surroundings of the engine in a bundled page. Each address is written so that bundlers see
 * the file and copy it; worker.js is complete, so a copy under another name works.
 */

/** @type {Record<string, string> | undefined} */
let chosen;

/**
 * Sets the folder of the package's files, for a bundler that does not copy them.
 *
 * @param {string | URL} folder its address, with a slash at the end
 */
export function setFolder(folder) {
  const from = new URL(folder, globalThis.location?.href);
  const names = ['threads.wasm', 'baseline.wasm', 'tokenizer.wasm', 'worker.js'];
  chosen = Object.fromEntries(names.map((name) => [name.replace('.wasm', ''), new URL(name, from).href]));
}

/** A whole address: Turbopack's are relative to the page. @param {string} address */
const whole = (address) => new URL(address, globalThis.location?.href).href;

/** Addresses of the wasm files, by variant. @returns {Record<string, string>} */
export const files = () => chosen ?? {
  threads: whole(new URL('./threads.wasm', import.meta.url).href),
  baseline: whole(new URL('./baseline.wasm', import.meta.url).href),
  tokenizer: whole(new URL('./tokenizer.wasm', import.meta.url).href),
};

/** Starts the worker of the engine. @returns {Worker} */
export function startWorker() {
  const script = chosen?.['worker.js'] ?? whole(new URL('./worker.js', import.meta.url).href);
  const options = /** @type {WorkerOptions} */ ({ type: 'module', name: 'octet' });
  if (new URL(script).origin === globalThis.location?.origin) return new Worker(script, options);
  // A worker of another origin, such as a CDN's, starts from a script of this one.
  const text = `import ${JSON.stringify(script)};`;
  return new Worker(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })), options);
}

/** True if threads may share memory. */
export const isIsolated = () => globalThis.crossOriginIsolated === true;

/** Number of processors. */
export const processors = () => navigator.hardwareConcurrency || 1;
