// Whole models in LiteRT.js (XNNPACK) and in Octet, int8 and float, on one thread and on two: rows for
// scripts/bench.mjs. Both run in workers of one page and take turns. The .tflite files are made of
// the same ONNX files by TensorFlow, which is installed for this bench alone (benches/litert).

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chosen } from './bench-architectures.mjs';
import { cases } from './bench-models.mjs';
import { median } from './median.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** @typedef {import('./bench-models.mjs').Record_} Record_ */

/** The models. @type {Record<string, import('./bench-models.mjs').Case>} */
export const models = { mobilenet: cases.mobilenet, lite0: cases.lite0, resnet18: { name: 'ResNet-18', file: 'resnet18', from: 'architecture' }, resnet50: cases.resnet50 };

/** Turns of each lane. */
const rounds = 15;

/** The ratios that Octet's int8 is to reach: in the mean, by threads, and for each model. */
const mean = /** @type {Record<number, number>} */ ({ 1: 1.25, 2: 1.2 });
const least = 1.05;

/** Path and folder of what this bench makes. */
export const path = '/litert/';
/** @param {string} cache */
export const folder = (cache) => join(cache, 'litert');

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url of the server
 * @param {string} python that has numpy and onnx
 * @param {{ cache: string, corpus: string, only: string[] }} options
 * @param {Record_} record
 */
export async function litert(browser, url, python, { cache, corpus, only }, record) {
  mkdirSync(folder(cache), { recursive: true });
  await peer(folder(cache));
  const tensorflow = execFileSync(join(checkout, 'scripts', 'venv.sh'), ['litert'], { encoding: 'utf8' }).trim();
  /** @type {Record<string, number[]>} */
  const ratios = {};
  for (const { model: one, source, served } of chosen(models, only, corpus, python)) {
    convert(tensorflow, source, join(folder(cache), one.file));
    for (const threads of [1, 2]) {
      const page = await browser.newPage();
      try {
        await page.goto(`${url}bench/blank.html`);
        const times = await page.evaluate(measured, { model: served, tflite: `${path}${one.file}`, wasm: path, worker: `${path}worker.js`, threads, rounds });
        judge(one.name, threads, times, ratios, record);
      } finally {
        await page.close();
      }
    }
  }
  if (only.length > 0) return;
  for (const threads of [1, 2]) {
    const found = ratios[threads];
    const ratio = Math.exp(found.reduce((sum, one) => sum + Math.log(one), 0) / found.length);
    record('litert', `geometric mean over ${found.length} models, int8, ${spoken(threads)}`, ratio, 'times', { peer: 'LiteRT.js 2.5.3, int8', ratio, target: `at least ${mean[threads]} times as fast`, holds: ratio >= mean[threads] });
  }
}

const spoken = (/** @type {number} */ threads) => (threads === 1 ? 'one thread' : 'two threads');

/** Bundles the peer's worker, with its wasm files beside it, where it looks for them. @param {string} to */
async function peer(to) {
  const installed = (/** @type {string[]} */ ...args) => execFileSync(join(checkout, 'scripts', 'package-tools.sh'), args, { encoding: 'utf8' }).trim();
  const packages = installed('benches/litert');
  const esbuild = createRequire(join(installed(), 'package.json'))('esbuild');
  await esbuild.build({
    entryPoints: [join(checkout, 'benches', 'litert', 'worker.js')], outfile: join(to, 'worker.js'), nodePaths: [join(packages, 'node_modules')],
    bundle: true, format: 'iife', target: 'es2022', logLevel: 'error',
  });
  execFileSync('cp', ['-rT', join(packages, 'node_modules', '@litertjs', 'core', 'wasm'), to]);
}

/** Writes the .tflite files of a model, unless they are there. @param {string} python @param {string} source @param {string} to without ending */
function convert(python, source, to) {
  if (existsSync(`${to}_int8.tflite`)) return;
  const env = { ...process.env, TF_CPP_MIN_LOG_LEVEL: '3' };
  execFileSync(python, [join(checkout, 'benches', 'litert', 'tflite.py'), source, `${to}.tflite`, `${to}.part`], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  renameSync(`${to}.part`, `${to}_int8.tflite`);
}

/**
 * @param {string} name @param {number} threads @param {Awaited<ReturnType<typeof measured>>} times
 * @param {Record<string, number[]>} ratios of int8, by threads
 * @param {Record_} record
 */
function judge(name, threads, times, ratios, record) {
  for (const kind of /** @type {const} */ (['int8', 'float'])) {
    const [ours, theirs] = [times[`octet ${kind}`], times[`litert ${kind}`]];
    const ratio = median(theirs.map((ms, round) => ms / ours[round]));
    const judged = kind === 'int8';
    if (judged) (ratios[threads] ??= []).push(ratio);
    record('litert', `${name}, ${kind}, ${spoken(threads)}`, median(ours), 'ms', {
      peer: `LiteRT.js 2.5.3, ${kind}`, peer_value: median(theirs), ratio, target: judged ? `at least ${least} times as fast` : 'none: for comparison', holds: !judged || ratio >= least,
    });
  }
}

/**
 * Times of all lanes, in turns. A turn is the median of some runs, measured inside the worker.
 *
 * @param {{ model: string, tflite: string, wasm: string, worker: string, threads: number, rounds: number }} how `tflite` without ending
 * @returns {Promise<Record<'octet int8' | 'octet float' | 'litert int8' | 'litert float', number[]>>}
 */
async function measured({ model, tflite, wasm, worker: script, threads, rounds }) {
  const address = '/www/octet.js';
  const { Octet } = await import(address);
  const octet = await Octet.start({ threads });
  const answer = await fetch(model);
  if (!answer.ok) throw new Error(`${model}: ${answer.status}`);
  const float = await octet.open(await answer.blob(), { name: model });
  const samples = await float.demoSamples(2);
  await float.calibrate(samples, { method: 'minmax' });
  const int8 = await octet.open((await float.quantize({})).model);
  const { previews, first } = await float.preview([samples[0]]);
  const [, channels, ...sides] = previews[0].shape;

  let runs = 3;
  /** @param {typeof float} opened */
  const ours = async (opened) => (await opened.run([samples[0]], { runs, warmUp: 2 })).totals.total.median;
  /** A worker with a model. Values in another layout take as long. @param {string} file */
  const theirs = async (file) => {
    const worker = new Worker(script);
    /** @param {unknown} message @returns {Promise<number>} */
    const ask = (message) => new Promise((done, failed) => {
      worker.onerror = ({ message }) => failed(new Error(message));
      worker.onmessage = ({ data }) => (data.failure ? failed(new Error(data.failure)) : done(data.value));
      worker.postMessage(message);
    });
    const inPage = (/** @type {string} */ path) => new URL(path, location.href).href;
    await ask({ how: { wasm: inPage(wasm), model: inPage(file), threads, shape: [1, ...sides, channels], data: first } });
    return () => ask({ runs });
  };
  /** @type {Record<'octet int8' | 'octet float' | 'litert int8' | 'litert float', () => Promise<number>>} */
  const lanes = {
    'octet int8': () => ours(int8),
    'litert int8': await theirs(`${tflite}_int8.tflite`),
    'octet float': () => ours(float),
    'litert float': await theirs(`${tflite}.tflite`),
  };
  const names = /** @type {(keyof typeof lanes)[]} */ (Object.keys(lanes));
  const times = /** @type {Record<keyof typeof lanes, number[]>} */ ({ 'octet int8': [], 'litert int8': [], 'octet float': [], 'litert float': [] });
  for (let warm = 0; warm < 5; warm += 1) {
    for (const name of names) await lanes[name]();
    runs = Math.max(3, Math.min(25, Math.ceil(120 / (await lanes['octet int8']()))));
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) times[name].push(await lanes[name]());
  }
  octet.close();
  return times;
}
