#!/usr/bin/env node
// Benchmarks of Octet in Chromium against its peers: a table, and bench.json in the target folder.
//
//   node scripts/bench.mjs [speed] [methods] [samples] [size] [open] [page] [memory] [profiling] [kernels] [models] [litert] [calls] [busy] [check] [alarms] [search] [learning] [node] [language] [large] [pieces]
//                          all of them where none is named; models:lite0,minilm are some models of that bench,
//                          kernels:depthwise a part of that
//     --layers             prints where the time of the models goes
//     --firefox            in Firefox: for `kernels` and `models`
//
// Call it through `make bench`, which builds the programs. A row that misses its target is marked
// (`holds: false`), but the exit code stays 0: a bench is a measurement, not a test. Runs of ours
// and of the peer take turns, each of ours in a fresh page with a fresh worker. The median of the
// ratios counts.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import * as bench from './bench-kernels.mjs';
import * as large from './bench-memory.mjs';
import * as text from './bench-language.mjs';
import * as whole from './bench-models.mjs';
import { busy } from './bench-busy.mjs';
import { calls } from './bench-calls.mjs';
import { litert } from './bench-litert.mjs';
import { Browser, required } from './bench-browser.mjs';
import { benchAlarms } from './bench-alarms.mjs';
import { benchCheck } from './bench-check.mjs';
import { benchCancel } from './bench-cancel.mjs';
import { benchNode } from './bench-node.mjs';
import { benchPieces } from './bench-large.mjs';
import { benchPage } from './bench-page.mjs';
import { benchLearning } from './bench-learning.mjs';
import { benchSearch } from './bench-search.mjs';
import { median } from './median.mjs';

/** @import { Run } from './bench-browser.mjs' */

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const MiB = 2 ** 20;
const rounds = 7;

/**
 * @typedef {object} Row
 * @property {string} bench
 * @property {string} row
 * @property {number} value
 * @property {string} unit
 * @property {string | null} peer
 * @property {number | null} peer_value
 * @property {number | null} ratio value over peer_value
 * @property {string} target
 * @property {boolean} holds
 */

/** @type {Row[]} */
const rows = [];

/**
 * @param {string} bench
 * @param {string} row
 * @param {number} value
 * @param {string} unit
 * @param {{ target: string, holds: boolean, peer?: string | null, peer_value?: number | null, ratio?: number | null }} judged
 */
function record(bench, row, value, unit, { target, holds, peer = null, peer_value = null, ratio = null }) {
  rows.push({ bench, row, value, unit, peer, peer_value, ratio, target, holds });
  console.error(`${bench}: ${row}: ${value.toPrecision(3)} ${unit}${ratio === null ? '' : `, ratio ${ratio.toPrecision(3)}`}`);
}

/** @param {string} name @returns {string[]} */
function samplesOf(name) {
  const files = readdirSync(join(required('OCTET_CORPUS'), 'samples', name)).filter((file) => file.endsWith('.npz')).sort();
  return files.map((file) => `samples/${name}/${file}`);
}

/** @param {string} name @param {string} folder @param {string} [method] @returns {{ seconds: number, peak_bytes: number, samples: number }} */
function peer(name, folder, method = 'minmax') {
  const corpus = required('OCTET_CORPUS');
  const args = [join(checkout, 'benches', 'peer.py'), join(corpus, 'models', `${name}.onnx`), join(corpus, 'samples', name), join(folder, 'peer.onnx'), '--method', method];
  const done = spawnSync(required('OCTET_PYTHON'), args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`the peer failed:\n${done.stderr}`);
  return JSON.parse(done.stdout.trim().split('\n').at(-1) ?? '');
}

/**
 * EfficientNet-Lite0, 16 samples, 2 threads: open → calibrated → quantized, in turns with ONNX Runtime's calibration.
 *
 * @param {Browser} browser @param {string} method ours @param {string} theirMethod ONNX Runtime's
 */
async function against(browser, method, theirMethod) {
  const job = { model: 'models/efficientnet_lite0.onnx', samples: samplesOf('efficientnet_lite0'), threads: 2, method };
  const folder = mkdtempSync(join(tmpdir(), 'octet-bench-'));
  try {
    /** @type {Run[]} */
    const ours = [];
    /** @type {ReturnType<typeof peer>[]} */
    const theirs = [];
    for (let round = 0; round < rounds; round++) {
      ours.push(await browser.run(job));
      theirs.push(peer('efficientnet_lite0', folder, theirMethod));
    }
    return {
      samples: job.samples.length,
      threads: ours[0].threads,
      seconds: median(ours.map((run) => run.ms)) / 1000,
      again: median(ours.map((run) => run.again)),
      pages: Math.max(...ours.map((run) => run.pages)),
      their_seconds: median(theirs.map((run) => run.seconds)),
      their_peaks: theirs.map((run) => run.peak_bytes),
      ratio: median(ours.map((run, index) => run.ms / 1000 / theirs[index].seconds)),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Overhead of observers in EfficientNet-Lite0, natively on one thread: runs with and without them
 * take turns.
 */
function observers() {
  const corpus = required('OCTET_CORPUS');
  const program = join(dirname(required('OCTET')), 'examples', 'observers');
  const args = [join(corpus, 'models', 'efficientnet_lite0.onnx'), join(corpus, samplesOf('efficientnet_lite0')[0]), '41'];
  const done = spawnSync(program, args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`${program} failed (scripts/bench.sh makes it):\n${done.stderr ?? done.error}`);
  const { ms, histograms, means } = JSON.parse(done.stdout);
  record('methods', 'histograms, a run with ends and histograms', ms * histograms, 'ms', {
    peer: 'a run with ends only', peer_value: ms, ratio: histograms, target: 'at most 1.15', holds: histograms <= 1.15,
  });
  record('methods', 'means of channels, a run with them, too', ms * histograms * means, 'ms', {
    peer: 'a run with ends and histograms', peer_value: ms * histograms, ratio: means, target: 'at most 1.02', holds: means <= 1.02,
  });
}

/** @type {Record<string, (browser: Browser, only: string[], layers: boolean) => Promise<void>>} */
const benches = {
  /** The whole pipeline with minmax. */
  async speed(browser) {
    const { samples, threads, seconds, their_seconds, pages, their_peaks, ratio } = await against(browser, 'minmax', 'minmax');
    record('speed', `EfficientNet-Lite0, ${samples} samples, ${threads} threads`, seconds, 's', {
      peer: 'onnxruntime 1.31.1 quantize_static, native', peer_value: their_seconds, ratio,
      target: 'at most 0.25 of the peer', holds: ratio <= 0.25,
    });
    const peak = Math.max(...their_peaks);
    record('speed', 'wasm memory of the same', pages / MiB, 'MiB', {
      peer: 'peak memory of the Python process', peer_value: peak / MiB, ratio: pages / peak,
      target: 'at most 120 MB', holds: pages <= 120e6,
    });
  },

  /**
   * The methods with histograms, against ONNX Runtime's percentile; and other settings without a
   * new calibration.
   */
  async methods(browser) {
    for (const method of ['minmax', 'percentile:99.999', 'mse', 'auto', 'entropy']) {
      const { seconds, again, their_seconds, pages, their_peaks, ratio } = await against(browser, method, 'percentile');
      record('methods', `${method}, as in speed`, seconds, 's', {
        peer: "onnxruntime 1.31.1's percentile, native", peer_value: their_seconds, ratio,
        target: 'at most 1/6 of the peer', holds: ratio <= 1 / 6,
      });
      const peak = Math.min(...their_peaks);
      record('methods', `${method}, wasm memory`, pages / MiB, 'MiB', {
        peer: 'peak memory of the Python process', peer_value: peak / MiB, ratio: pages / peak, target: 'at most 1/5 of the peer', holds: pages <= peak / 5,
      });
      record('methods', `${method}, other settings`, again, 'ms', { target: 'under 300 ms', holds: again < 300 });
    }
    observers();
  },

  /** Peak memory with 16 and with 128 samples. */
  async samples(browser) {
    const sixteen = samplesOf('efficientnet_lite0').slice(0, 16);
    const many = Array.from({ length: 128 }, (_, index) => sixteen[index % sixteen.length]);
    const model = 'models/efficientnet_lite0.onnx';
    // Threads free memory in random order and wasm memory never shrinks, hence the median of
    // several runs.
    const [few, lots] = [/** @type {Run[]} */ ([]), /** @type {Run[]} */ ([])];
    for (let round = 0; round < rounds; round += 1) {
      few.push(await browser.run({ model, samples: sixteen, threads: 2 }));
      lots.push(await browser.run({ model, samples: many, threads: 2 }));
    }
    for (const [row, key] of /** @type {const} */ ([
      ['wasm memory, 128 samples against 16', 'pages'],
      ['allocated at the peak, 128 samples against 16', 'peak'],
    ])) {
      const [a, b] = [lots, few].map((runs) => median(runs.map((run) => run[key])));
      record('samples', row, a / MiB, 'MiB', {
        peer: 'Octet with 16 samples', peer_value: b / MiB, ratio: a / b, target: 'grows by less than 2 %', holds: a / b < 1.02,
      });
    }
  },

  /** Download sizes for a visitor. */
  async size() {
    for (const variant of ['threads', 'baseline']) {
      const bytes = gzipSync(readFileSync(join(checkout, 'pkg', variant, 'octet_bg.wasm')), { level: 9 }).length;
      record('size', `${variant} build, gzipped wasm${variant === 'threads' ? ' (the default)' : ''}`, bytes / 1e6, 'MB', {
        peer: 'onnxruntime-web 1.30.0, gzipped wasm', ...rival(bytes), target: 'under 3 MB', holds: bytes < 3e6,
      });
    }
  },

  /** Waiting times of a visitor. */
  async page(browser) {
    const inCorpus = (/** @type {string} */ path) => join(required('OCTET_CORPUS'), path);
    const [model, large] = ['models/efficientnet_lite0.onnx', 'architectures/resnet50.onnx'].map(inCorpus);
    const photos = readdirSync(inCorpus('photos')).filter((name) => name.endsWith('.jpg')).sort().slice(0, 20);
    await benchPage(browser.browser, browser.server.url, model, photos.map((name) => inCorpus(`photos/${name}`)), record);
    const samples = samplesOf('efficientnet_lite0').map(inCorpus);
    await benchCancel(browser.browser, browser.server.url, { model, large, samples }, record);
  },

  /** From a file of 100 MB to its details. */
  async open(browser) {
    const model = 'architectures/resnet50.onnx';
    const size = readFileSync(join(required('OCTET_CORPUS'), model)).length;
    const runs = [];
    for (let round = 0; round < rounds; round++) runs.push(await browser.run({ model, samples: [], threads: 2 }));
    const seconds = median(runs.map((run) => run.opened)) / 1000;
    record('open', `ResNet-50, ${(size / 1e6).toFixed(0)} MB, to its card`, seconds, 's', { target: 'under 3 s', holds: seconds < 3 });
    const pages = Math.max(...runs.map((run) => run.pages));
    record('open', 'wasm memory of the same', pages / MiB, 'MiB', {
      peer: 'the file', peer_value: size / MiB, ratio: pages / size, target: 'at most 1.5 of the file', holds: pages <= 1.5 * size,
    });
  },

  /** Peak memory of large architectures. */
  async memory(browser) {
    await large.memory(browser, record, { corpus: required('OCTET_CORPUS'), python: required('OCTET_PYTHON') });
  },

  /** Overhead of measuring every layer, natively: pairs of runs with and without it. */
  async profiling() {
    for (const name of ['efficientnet_lite0', 'squeezenet']) {
      const corpus = required('OCTET_CORPUS');
      const sample = join(corpus, samplesOf(name)[0]);
      const args = ['run', join(corpus, 'models', `${name}.onnx`), '--input', sample, '--threads', '1', '--overhead', '100'];
      const done = spawnSync(required('OCTET'), args, { encoding: 'utf8' });
      if (done.status !== 0) throw new Error(`octet run failed:\n${done.stderr}`);
      const share = Number(/adds (-?[\d.]+) %/.exec(done.stdout)?.[1] ?? NaN);
      record('profiling', `${name}, every layer measured`, share, '% of a run', { target: 'under 2 %', holds: share < 2 });
    }
  },

  /** The int8 kernels alone. */
  async kernels(browser, only) {
    const page = await browser.browser.newPage();
    try {
      await page.goto(`${browser.server.url}bench/blank.html`);
      await bench.kernels(page, record, only);
    } finally {
      await page.close();
    }
  },

  /** Whole quantized models. */
  async models(browser, only, layers) {
    const options = { corpus: required('OCTET_CORPUS'), only, layers };
    await whole.models(browser.browser, browser.server.url, required('OCTET_PYTHON'), options, record);
  },

  /** Whole models, against LiteRT.js. */
  async litert(browser, only) {
    const options = { cache: required('OCTET_CACHE'), corpus: required('OCTET_CORPUS'), only };
    await litert(browser.browser, browser.server.url, required('OCTET_PYTHON'), options, record);
  },

  /** Calls of kept sessions against the runs inside. */
  async calls(browser, only) {
    await calls(browser.browser, browser.server.url, required('OCTET_PYTHON'), { corpus: required('OCTET_CORPUS'), only }, record);
  },

  /** Two threads beside other programs. */
  async busy(browser, only) {
    await busy(browser.browser, browser.server.url, required('OCTET_PYTHON'), { corpus: required('OCTET_CORPUS'), only }, record);
  },

  /** Quality of a quantized language model, natively. */
  async language(_browser, only) {
    text.language(record, required('OCTET_PYTHON'), only);
  },

  /** Memory and speed of conversions of gigabytes, natively. */
  async large(_browser, only) {
    text.large(record, required('OCTET_PYTHON'), only);
  },

  /** The cold start of the command in Node. */
  async node() {
    await benchNode({ corpus: required('OCTET_CORPUS') }, record);
  },

  /** The page's check in onnxruntime-web. */
  async check(_browser, only) {
    await benchCheck(join(checkout, 'benches'), required('OCTET_PYTHON'), { corpus: required('OCTET_CORPUS'), only }, record);
  },

  /** The check over the corpus, where nothing is damaged. */
  async alarms(_browser, only) {
    await benchAlarms({ corpus: required('OCTET_CORPUS'), only }, record);
  },

  /** A search under a budget on the page. */
  async search(browser, only) {
    await benchSearch(browser.browser, browser.server.url, { corpus: required('OCTET_CORPUS'), only }, record);
  },

  /** Weights that learn on the page. */
  async learning(browser, only) {
    await benchLearning(browser.browser, browser.server.url, { corpus: required('OCTET_CORPUS'), only }, record);
  },

  /** Memory and speed of conversions of gigabytes on the page. */
  async pieces(browser, only) {
    await benchPieces(browser.server.url, required('OCTET_PYTHON'), only, record);
  },
};

/** @param {number} bytes */
function rival(bytes) {
  const wasm = join(checkout, 'node_modules', 'onnxruntime-web', 'dist', 'ort-wasm-simd-threaded.wasm');
  const theirs = gzipSync(readFileSync(wasm), { level: 9 }).length;
  return { peer_value: theirs / 1e6, ratio: bytes / theirs };
}

/** @param {Row[]} table */
function print(table) {
  /** @param {number | null} value */
  const number = (value) => (value === null ? '' : value.toPrecision(3));
  const cells = [
    ['bench', 'row', 'value', '', 'peer', 'peer value', 'ratio', 'target', 'holds'],
    ...table.map((r) => [r.bench, r.row, number(r.value), r.unit, r.peer ?? '', number(r.peer_value), number(r.ratio), r.target, r.holds ? 'yes' : 'NO']),
  ];
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  for (const row of cells) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
}

async function main() {
  const { values: flags, positionals } = parseArgs({ allowPositionals: true, options: { firefox: { type: 'boolean', default: false }, layers: { type: 'boolean', default: false } } });
  const chosen = new Map(positionals.map((word) => {
    const [name, only = ''] = word.split(':', 2);
    return [name, only.split(',').filter(Boolean)];
  }));
  const named = [...chosen.keys()];
  const unknown = named.filter((name) => !(name in benches));
  if (unknown.length > 0) throw new Error(`no bench is called ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}`);
  const out = join(required('CARGO_TARGET_DIR'), 'bench.json');
  const browser = await Browser.start(flags.firefox);
  try {
    for (const name of named.length > 0 ? named : Object.keys(benches)) await benches[name](browser, chosen.get(name) ?? [], flags.layers);
  } finally {
    await browser.close();
  }
  print(rows);
  console.log(`${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, node ${process.version}; written to ${out}`);
  writeFileSync(out, `${JSON.stringify(rows, null, 2)}\n`);
}

main().catch((error) => {
  console.error(`bench: ${error.message}`);
  process.exit(1);
});
