// @ts-check
/** The thread that runs a command, and the threads of its pool: the same file. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker, parentPort, workerData } from 'node:worker_threads';
import * as tokenizer from '../../../pkg/tokenizer/tokenizer.js';
import * as wasm from '../../../pkg/node/node.js';

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);

/** @param {string} name */
const file = (name) => readFileSync(fileURLToPath(new URL(name, import.meta.url)));

/** Runs the command and tells the code with which the process ends. */
async function run() {
  Object.assign(globalThis, { octetTokenizers });
  wasm.initSync({ module: new WebAssembly.Module(file('./command.wasm')) });
  port.postMessage({ memory: { control: wasm.control(), panic: wasm.panicText() } });
  const threads = wasm.threadsWanted(workerData.arguments);
  if (threads > 0) await wasm.initThreadPool(threads);
  port.postMessage({ code: wasm.commandLine(workerData.arguments) });
}

/** The tokenizers, which load with the first text. */
function octetTokenizers() {
  tokenizer.initSync({ module: new WebAssembly.Module(file('../dist/tokenizer.wasm')) });
  return tokenizer;
}

/** Makes this worker a thread of the pool. */
function serve() {
  port.once('message', ({ module, memory, receiver }) => {
    wasm.initSync({ module, memory });
    port.postMessage('ready');
    wasm.wbg_rayon_start_worker(receiver);
  });
}

if (workerData.name === 'octet') await run();
else serve();
