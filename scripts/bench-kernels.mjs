// The int8 kernels in Chromium, against float tiles of the same module and against themselves: rows for
// scripts/bench.mjs. A module of its own, so that they are measured in seconds.

import { spawnSync } from 'node:child_process';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** Forms by their number in `Form`. */
export const forms = /** @type {const} */ ({ simd128: 2, 'relaxed-split': 3, 'relaxed-fused': 4 });

/**
 * @typedef {{ make: 'new_gemm' | 'new_floats' | 'new_depthwise', arguments: number[] }} Job
 * @typedef {{ seconds: number[][] }} Times for each job the seconds a call took, a round each
 */

/** Builds both variants' modules and says where they lie. @returns {{ threads: string, baseline: string }} */
export function built() {
  const { status, stdout } = spawnSync(process.execPath, [join(checkout, 'scripts/wasm.mjs'), 'kernels'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error('the kernels\' bench was not built');
  const [threads, baseline] = stdout.trim().split('\n');
  return { threads, baseline };
}

/**
 * Runs jobs in turns, so that a machine whose speed drifts treats them alike. Jobs that can't run here have no times.
 *
 * @param {import('puppeteer-core').Page} page on a page of ours
 * @param {string} address of the module
 * @param {Job[]} jobs
 * @param {number} [rounds]
 * @returns {Promise<number[][]>}
 */
export async function times(page, address, jobs, rounds = 15) {
  return page.evaluate(async ({ address, jobs, rounds }) => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
    const memory = new WebAssembly.Memory({ initial: 64, maximum: 65536, shared: true });
    const { instance } = await WebAssembly.instantiate(await answer.arrayBuffer(), { env: { memory } });
    const calls = /** @type {Record<string, (...numbers: number[]) => number>} */ (/** @type {unknown} */ (instance.exports));
    const made = jobs.map((job) => calls[job.make](...job.arguments));
    /** @param {number} job @param {number} count */
    const seconds = (job, count) => {
      const began = performance.now();
      if (!calls.run(job, count)) throw new Error('a kernel refused its bench');
      return (performance.now() - began) / 1000;
    };
    const counts = made.map((job) => {
      if (job === 0) return 0;
      // Until the engine has compiled what is hot, and then long against the clock's ticks.
      for (const began = performance.now(); performance.now() - began < 400;) seconds(job, 1);
      let count = 1;
      while (seconds(job, count) < 4e-3) count *= 2;
      return count;
    });
    /** @type {number[][]} */
    const all = made.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      made.forEach((job, at) => {
        if (job !== 0) all[at].push(seconds(job, counts[at]) / counts[at]);
      });
    }
    for (const job of made) if (job !== 0) calls.end(job);
    return all;
  }, { address, jobs, rounds });
}

/** The middle of the ratios of two jobs' times, round by round. @param {number[]} over @param {number[]} under */
export function ratio(over, under) {
  const sorted = over.map((value, at) => value / under[at]).sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

/** Mounts for the server and the address of a module. @param {string} file @param {string} name */
export const mounted = (file, name) => ({ mount: { [`/${name}/`]: dirname(file) }, address: `/${name}/${basename(file)}` });
