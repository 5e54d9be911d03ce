// The int8 kernels in Chromium, against float tiles of the same module and against each other: rows
// for scripts/bench.mjs. A module of its own is measured in seconds.

import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { depthwiseLayers } from './bench-depthwise.mjs';
import { median } from './median.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** Paths under which the bench's server offers the module and its file. */
export const path = '/kernels/';
const file = 'octet_kernel_bench.wasm';

/** The folder behind that path. @param {string} cache Octet's cache folder */
export const folder = (cache) => join(cache, 'target', 'threads', 'wasm32-unknown-unknown', 'release');

/** Instruction sets by their number in the module. */
export const forms = /** @type {const} */ ({ simd128: 2, 'relaxed-split': 3, 'relaxed-fused': 4 });

/**
 * Rows, depth, columns of products with 4-bit weights: MiniLM's layers with sixteen tokens and with
 * one.
 */
const blocks = [[16, 384, 384], [16, 384, 1536], [16, 1536, 384], [1, 384, 1536]];

/** Rows, depth, columns. The first two fit the caches; the others are layers of real models. */
const gemms = [[64, 256, 64], [64, 512, 512], [3136, 64, 64], [784, 144, 32], [196, 480, 112], [48, 1152, 320]];

/**
 * Rows, depth, columns of products in the steps of learning: outputs by inputs by positions, and
 * then by the transpose.
 */
const steps = [[64, 256, 256], [320, 1152, 256], [64, 256, 32]];

/** Side in pixels, input and output channels of 3×3 layers of real models. */
const convolutions = [[56, 64, 64], [28, 128, 128], [14, 256, 256], [7, 512, 512], [55, 16, 64], [27, 32, 128], [13, 64, 256], [120, 24, 24], [60, 96, 24]];

/**
 * @typedef {{ make: 'new_gemm' | 'new_floats' | 'new_learning' | 'new_blocks' | 'new_depthwise' | 'new_float_depthwise' | 'new_conv' | 'new_fake_quantize' | 'new_conversion', arguments: number[] }} Job
 * @typedef {{ target: string, holds: boolean, peer?: string | null, peer_value?: number | null, ratio?: number | null }} Judged
 */

/** Builds the module. */
function build() {
  const { status } = spawnSync(process.execPath, [join(checkout, 'scripts/wasm.mjs'), 'kernels'], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the kernels\' bench was not built');
}

/**
 * @typedef {(bench: string, row: string, value: number, unit: string, judged: Judged) => void} Recorder
 */

/**
 * Groups of rows, by name.
 *
 * @type {Record<string, (page: import('puppeteer-core').Page, record: Recorder) => Promise<void>>}
 */
export const parts = {
  fake: fakeQuantize,
  gemm: (page, record) => inTurn(gemms, (sizes) => gemm(page, record, sizes)),
  learning: (page, record) => inTurn(steps, (sizes) => learning(page, record, sizes)),
  blocks: (page, record) => inTurn(blocks, (sizes) => product(page, record, sizes)),
  depthwise: (page, record) => inTurn(Object.entries(forms), (form) => inTurn([3, 5], (kernel) => depthwise(page, record, form, kernel))),
  winograd: (page, record) => inTurn(convolutions, (sizes) => winograd(page, record, sizes)),
  conversions: (page, record) => inTurn([[96, 28 * 28], [96, 128 * 128]], (size) => conversions(page, record, size)),
  layers: (page, record) => inTurn([3, 5], (kernel) => depthwiseLayers(page, record, kernel)),
};

/**
 * The rows of the named groups, or of all.
 *
 * @param {import('puppeteer-core').Page} page on a page of the server
 * @param {Recorder} record
 * @param {string[]} only
 */
export async function kernels(page, record, only = []) {
  build();
  for (const name of only.length > 0 ? only : Object.keys(parts)) {
    if (!(name in parts)) throw new Error(`the kernels have no part ${name}; there are ${Object.keys(parts).join(', ')}`);
    await parts[name](page, record);
  }
}

/** @template T @param {readonly T[]} list @param {(one: T) => Promise<void>} each */
async function inTurn(list, each) {
  for (const one of list) await each(one);
}

/**
 * A product with each instruction set, against a float tile.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {Recorder} record
 * @param {number[]} sizes
 */
async function gemm(page, record, sizes) {
  const floats = [1, 0].map((wide) => /** @type {Job} */ ({ make: 'new_floats', arguments: [wide, ...sizes] }));
  const ours = Object.values(forms).map((form) => /** @type {Job} */ ({ make: 'new_gemm', arguments: [form, ...sizes] }));
  const [two, four, ...integers] = await times(page, path + file, [...floats, ...ours]);
  const best = ratio(two, four) < 1 ? two : four;
  const whole = sizes === gemms[0] || sizes === gemms[1];
  // The relaxed instruction set is the one that the kernels choose.
  const relaxed = integers.slice(1).filter((times) => times.length > 0).sort((a, b) => Math.min(...a) - Math.min(...b))[0];
  for (const [name, seconds, wanted] of /** @type {const} */ ([['simd128', integers[0], 2.3], ['relaxed', relaxed, 2.9]])) {
    const target = whole ? wanted : wanted * 0.8;
    const times = seconds ? ratio(best, seconds) : 0;
    const speed = (/** @type {number[]} */ all) => sizes.reduce((a, b) => a * b) / Math.min(...all) / 1e9;
    record('kernels', `gemm ${sizes.join('×')}, ${name}`, seconds ? speed(seconds) : 0, 'GMAC/s', {
      peer: 'the best float tile', peer_value: speed(best), ratio: times, target: `at least ${target.toFixed(1)} times`, holds: times >= target,
    });
  }
}

/**
 * The products of learning, with a fixed order of sums, against the float tile.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {Recorder} record
 * @param {number[]} sizes
 */
async function learning(page, record, sizes) {
  const jobs = ['new_floats', 'new_learning'].flatMap((make) => [1, 0].map((kind) => /** @type {Job} */ ({ make, arguments: [kind, ...sizes] })));
  const [two, four, transposed, plain] = await times(page, path + file, jobs);
  const best = ratio(two, four) < 1 ? two : four;
  const speed = (/** @type {number[]} */ all) => sizes.reduce((a, b) => a * b) / Math.min(...all) / 1e9;
  for (const [name, seconds] of /** @type {const} */ ([['product', plain], ['with a transpose', transposed]])) {
    record('kernels', `learning ${sizes.join('×')}, ${name}`, speed(seconds), 'GMAC/s', {
      peer: 'the best float tile', peer_value: speed(best), ratio: ratio(best, seconds), target: 'none', holds: true,
    });
  }
}

/**
 * Products with 4-bit block-wise weights, against the float tile.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {Recorder} record
 * @param {number[]} sizes
 */
async function product(page, record, sizes) {
  // A tile has two or four rows.
  const whole = [Math.max(sizes[0], 4), sizes[1], sizes[2]];
  const [two, four, seconds] = await times(page, path + file, [
    { make: 'new_floats', arguments: [1, ...whole] }, { make: 'new_floats', arguments: [0, ...whole] }, { make: 'new_blocks', arguments: sizes },
  ]);
  const best = ratio(two, four) < 1 ? two : four;
  const speed = (/** @type {number[]} */ all, /** @type {number[]} */ of) => of.reduce((a, b) => a * b) / Math.min(...all) / 1e9;
  record('kernels', `weights of 4 bits in blocks, ${sizes.join('×')}`, speed(seconds, sizes), 'GMAC/s', {
    peer: 'the best float tile', peer_value: speed(best, whole), ratio: ratio(best, seconds) * sizes[0] / whole[0], target: 'none', holds: true,
  });
}

/**
 * A depthwise convolution by its dilation, against itself and against float of the same size.
 *
 * @param {import('puppeteer-core').Page} page @param {Recorder} record @param {[string, number]} form @param {number} kernel
 */
async function depthwise(page, record, [name, form], kernel) {
  const dilations = [1, 2, 5];
  const sizes = (/** @type {number} */ dilation) => [28, 96, kernel, dilation];
  const all = await times(page, path + file, [
    ...dilations.map((dilation) => /** @type {Job} */ ({ make: 'new_depthwise', arguments: [form, ...sizes(dilation)] })),
    ...dilations.map((dilation) => /** @type {Job} */ ({ make: 'new_float_depthwise', arguments: sizes(dilation) })),
  ]);
  const [integers, floats] = [all.slice(0, 3), all.slice(3)];
  if (integers[0].length === 0) return;
  const speed = (/** @type {number[]} */ all) => 28 * 28 * 96 * kernel * kernel / Math.min(...all) / 1e9;
  dilations.forEach((dilation, at) => {
    const row = `depthwise ${kernel}×${kernel}, 28×28×96, dilation ${dilation}, ${name}`;
    // tract's float convolution is not in this small module; it is the peer of whole layers
    // (bench-depthwise.mjs).
    const faster = ratio(floats[at], integers[at]);
    record('kernels', row, speed(integers[at]), 'GMAC/s', {
      peer: 'our own float kernel', peer_value: speed(floats[at]), ratio: faster, target: 'at least as fast', holds: faster >= 1,
    });
    if (dilation === 1) return;
    const slower = ratio(integers[at], integers[0]);
    record('kernels', row, speed(integers[at]), 'GMAC/s', {
      peer: 'the same with dilation 1', peer_value: speed(integers[0]), ratio: slower, target: 'at most 1.1 of its time', holds: slower <= 1.1,
    });
  });
}

/**
 * A Winograd convolution against the direct one, with the same and with the fastest instruction
 * set.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {Recorder} record
 * @param {number[]} sizes
 */
async function winograd(page, record, sizes) {
  const [side, inputs, outputs] = sizes;
  const job = (/** @type {number} */ form, /** @type {number} */ way) => /** @type {Job} */ ({ make: 'new_conv', arguments: [form, way, ...sizes] });
  const [fewer, ...all] = await times(page, path + file, [job(forms.simd128, 1), ...Object.values(forms).map((form) => job(form, 0))]);
  const speed = (/** @type {number[]} */ seconds) => side * side * inputs * outputs * 9 / Math.min(...seconds) / 1e9;
  Object.keys(forms).forEach((name, at) => {
    if (all[at].length === 0) return;
    record('kernels', `3×3, ${side}×${side}, ${inputs} channels to ${outputs}, by fewer products`, speed(fewer), 'GMAC/s', {
      peer: `gathered, ${name}`, peer_value: speed(all[at]), ratio: ratio(all[at], fewer), target: 'none', holds: true,
    });
  });
}

/**
 * Quantization at the border of a region, and tables, against a copy of the floats.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {Recorder} record
 * @param {number[]} size channels and pixels
 */
async function conversions(page, record, size) {
  const kinds = ['quantized to channels last', 'dequantized to channels first', 'by a table', 'added to another'];
  const jobs = [...kinds, 'copied'].map((_, kind) => /** @type {Job} */ ({ make: 'new_conversion', arguments: [kind, ...size] }));
  const all = await times(page, path + file, jobs);
  const speed = (/** @type {number[]} */ seconds) => size[0] * size[1] / Math.min(...seconds) / 1e9;
  kinds.forEach((kind, at) => record('kernels', `${size[1]} pixels of ${size[0]} channels, ${kind}`, speed(all[at]), 'G values/s', {
    peer: 'floats copied', peer_value: speed(all[kinds.length]), ratio: ratio(all[kinds.length], all[at]), target: 'none', holds: true,
  }));
}

/**
 * Fake quantization: the cost of its mask, and its speed.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {Recorder} record
 */
async function fakeQuantize(page, record) {
  const count = 1 << 20;
  const bytes = await page.evaluate(async ({ address, count }) => {
    const memory = new WebAssembly.Memory({ initial: 64, maximum: 65536, shared: true });
    const module = await (await fetch(address)).arrayBuffer();
    const { instance } = await WebAssembly.instantiate(module, { env: { memory } });
    return /** @type {(count: number) => number} */ (instance.exports.mask_bytes)(count);
  }, { address: path + file, count });
  const floats = 4 * count;
  record('kernels', 'fake quantization, clamp mask of 2²⁰ values', bytes / 1024, 'KiB', {
    peer: 'the values as floats', peer_value: floats / 1024, ratio: bytes / floats, target: '1/32 (PyTorch’s byte masks: 1/4)', holds: bytes * 32 === floats,
  });
  const [seconds] = await times(page, path + file, [{ make: 'new_fake_quantize', arguments: [count] }]);
  const speed = count / Math.min(...seconds) / 1e9;
  record('kernels', 'fake quantization with its mask', speed, 'G values/s', { target: 'at least 1', holds: speed >= 1 });
}

/**
 * Runs jobs in turns, so that a drifting clock affects them alike. Jobs that can't run here have no
 * times.
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
      // Warm up until the hot code is compiled; then run long compared with the clock's resolution.
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

/**
 * The median of the ratios of two jobs' times, round by round.
 *
 * @param {number[]} over
 * @param {number[]} under
 */
export function ratio(over, under) {
  return median(over.map((value, at) => value / under[at]));
}
