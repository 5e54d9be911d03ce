// @ts-check
/** LiteRT.js in a worker, as scripts/bench-litert.mjs starts it: it opens a model and times runs. */

import { loadAndCompile, loadLiteRt, Tensor } from '@litertjs/core';

/** One run after the other, as a program with one sample at a time does. @type {() => Promise<void>} */
let run;

/** @param {{ wasm: string, model: string, threads: number, shape: number[], data: Float32Array }} how */
async function open({ wasm, model, threads, shape, data }) {
  await loadLiteRt(wasm, { threads: threads > 1 });
  const compiled = await loadAndCompile(model, { accelerator: 'wasm', cpuOptions: { numThreads: threads } });
  const input = new Tensor(data, shape);
  run = async () => {
    for (const output of await compiled.run([input])) {
      output.toTypedArray();
      output.delete();
    }
  };
}

/** The median time of some runs. @param {number} runs */
async function time(runs) {
  const times = [];
  for (let at = 0; at < runs; at += 1) {
    const began = performance.now();
    await run();
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[runs >> 1];
}

/** @param {MessageEvent} event */
async function answer({ data: { how, runs } }) {
  try {
    self.postMessage({ value: how ? await open(how) : await time(runs) });
  } catch (error) {
    self.postMessage({ failure: String(error) });
  }
}

// Its threads start from this script, too, as it is the one that their starter runs.
if (self.name === 'em-pthread') importScripts('litert_wasm_threaded_internal.js');
else self.addEventListener('message', answer);
