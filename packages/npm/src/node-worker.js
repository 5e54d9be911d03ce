// @ts-check
/**
 * The start of a worker thread: it gives the thread the names of a page's worker that worker.js
 * uses, then loads it. These are globals of the thread alone.
 */

import { readFile } from 'node:fs/promises';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { WebWorker } from './web-worker.js';

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
const request = globalThis.fetch;

/** @param {string} name @param {unknown} value */
const define = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

define('self', globalThis);
define('name', workerData.name);
define('location', new URL(import.meta.url));
define('crossOriginIsolated', true);
define('Worker', WebWorker);
if (!globalThis.navigator) define('navigator', { hardwareConcurrency: os.availableParallelism?.() ?? os.cpus().length });
define('postMessage', (/** @type {any} */ data, /** @type {any} */ transfer) => port.postMessage(data, transfer));
define('addEventListener', (/** @type {string} */ kind, /** @type {(event: { data: any }) => void} */ hear) => {
  if (kind === 'message') port.on('message', (data) => hear({ data }));
});
define('fetch', async (/** @type {string | URL} */ address, /** @type {RequestInit} */ init) => {
  if (!String(address).startsWith('file:')) return request(address, init);
  return new Response(await readFile(fileURLToPath(address)), { headers: { 'Content-Type': 'application/wasm' } });
});

// Through a variable, so that the file stays one of its own.
const script = new URL('./worker.js', import.meta.url).href;
await import(script);
