// Peak memory of calibrating large architectures, natively and in Chromium, against the figures of
// AMD Quark. Rows for scripts/bench.mjs. The architectures have random weights, as only memory is
// measured.
//
// All of them take about an hour on a small machine. $OCTET_ARCHITECTURES selects the
// architectures, $OCTET_MEMORY_METHODS the methods, $OCTET_MEMORY_PLACES the platforms.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, path } from './bench-architectures.mjs';

const MiB = 2 ** 20;

/** Methods, and their columns in Quark's table. */
const methods = ['minmax', 'percentile', 'layerwise-percentile', 'mse'];

/**
 * Sum of weights and largest live set in megabytes, each value freed after its last use, and the
 * gigabytes of Quark's table by method, if listed there. Of the last three only the forecast is
 * judged.
 *
 * @type {Record<string, { held?: number, quark?: number[], part?: number }>}
 */
const models = {
  resnet18: { held: 53 },
  mobilenet_v2: { held: 24 },
  mobilenet_v3_large: { held: 28 },
  resnet50: { held: 112, quark: [1.8, 1.877, 1.876, 1.879] },
  yolo8n_640: { held: 32, quark: [0.997, 1.066, 1.066, 1.078] },
  convnext_tiny: { held: 130, quark: [2.52, 2.66, 2.41, 2.52] },
  detr_resnet50: { held: 227, quark: [6.73, 8.11, 6.05, 6.19] },
  sam2_image_decoder: { held: 48, quark: [5.69, 3.99, 4.08, 4.12] },
  blip_image_encoder: { held: 380, quark: [5.97, 6.68, 5.39, 6.77] },
  blip_text_decoder: { held: 653, quark: [9.49, 9.97, 9.46, 10.01] },
  esrgan_x4: { held: 201, quark: [26.4, 20.71, 21.15, 21.63], part: 50 },
  sam2_image_encoder: { held: 750, quark: [15.58, 16.26, 16.65, 16.71] },
  vit_b_16: {},
  lraspp_mobilenet_v3_large: {},
  dwblock_k5d5: {},
};

/** Allowed excess over weights and live set. */
const OVER = 1.4;

/**
 * @typedef {{ target: string, holds: boolean, peer?: string | null, peer_value?: number | null, ratio?: number | null }} Judged
 * @typedef {(bench: string, row: string, value: number, unit: string, judged: Judged) => void} Recorder
 * @typedef {{ place: string, peak: number, occupied: number, forecast: number }} Measured bytes: allocated at the peak, what the process or the wasm memory takes, what was forecast
 */

/** @param {string} name @param {string[]} known @returns {string[]} */
function chosen(name, known) {
  const wanted = process.env[name]?.split(',').filter(Boolean);
  const unknown = wanted?.filter((one) => !known.includes(one)) ?? [];
  if (unknown.length > 0) throw new Error(`${name} names ${unknown.join(', ')}; there are ${known.join(', ')}`);
  return wanted ?? known;
}

/**
 * One calibration with the command line.
 *
 * @param {string} file
 * @param {string} method
 * @returns {Measured}
 */
function native(file, method) {
  const octet = process.env.OCTET;
  if (!octet) throw new Error('OCTET is not set: call this through `make bench`');
  const scratch = mkdtempSync(join(tmpdir(), 'octet-memory-'));
  try {
    const report = join(scratch, 'report.yaml');
    const args = ['quantize', file, '--demo', '4', '--threads', '1', '--method', method, '--out', join(scratch, 'q.onnx'), '--report', report];
    const done = spawnSync(octet, args, { encoding: 'utf8' });
    if (done.status !== 0) throw new Error(`${file}: ${done.stderr}`);
    const text = readFileSync(report, 'utf8');
    /** @param {RegExp} pattern */
    const number = (pattern) => Number(pattern.exec(text)?.[1] ?? NaN);
    return {
      place: 'native',
      peak: number(/^ {4}peakBytes: (\d+)\n {4}outputBytes/m),
      occupied: number(/^peak_memory_mb: ([\d.]+)/m) * MiB,
      forecast: number(/^ {4}peakBytes: (\d+)\n {4}peakStage/m),
    };
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/**
 * One calibration in a fresh page and then all methods. The figure of a method is the peak up to
 * its end.
 *
 * @param {import('puppeteer-core').Page} page on a page of the server
 * @param {string} address of the model
 * @param {string[]} methods
 * @returns {Promise<Measured[]>}
 */
async function web(page, address, methods) {
  return page.evaluate(async ({ address, methods }) => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
    const file = await answer.blob();
    const script = '/www/octet.js';
    const { Octet } = await import(script);
    const octet = await Octet.start({ threads: 1 });
    const model = await octet.open(file, { name: 'model.onnx' });
    const samples = await model.demoSamples(4);
    const { peakBytes } = await model.forecast(samples, { method: methods[0] });
    await model.calibrate(samples, { method: methods[0] });
    const found = [];
    for (const method of methods) {
      await model.quantize({ method });
      const { pages, peak } = await octet.memory();
      found.push({ place: 'Chromium', peak, occupied: pages, forecast: peakBytes });
    }
    octet.close();
    return found;
  }, { address, methods });
}

/**
 * All rows.
 *
 * @param {{ browser: import('puppeteer-core').Browser, server: { url: string } }} browser
 * @param {Recorder} record
 * @param {{ corpus: string, python: string }} where
 */
export async function memory({ browser, server }, record, { corpus, python }) {
  const places = chosen('OCTET_MEMORY_PLACES', ['native', 'Chromium']);
  const wanted = chosen('OCTET_MEMORY_METHODS', methods);
  for (const name of chosen('OCTET_ARCHITECTURES', Object.keys(models))) {
    const file = build(name, corpus, python);
    for (const place of places) {
      if (place === 'native') {
        for (const method of wanted) told(record, name, method, native(file, method));
        continue;
      }
      const page = await browser.newPage();
      try {
        await page.goto(`${server.url}bench/blank.html`);
        const found = await web(page, `${path}${name}.onnx`, wanted);
        found.forEach((measured, at) => told(record, name, wanted[at], measured));
      } finally {
        await page.close();
      }
    }
  }
}

/** @param {Recorder} record @param {string} name @param {string} method @param {Measured} found */
function told(record, name, method, { place, peak, occupied, forecast }) {
  const { held, quark, part = 10 } = models[name];
  const row = `${name}, ${method}, ${place}`;
  if (quark) {
    const theirs = quark[methods.indexOf(method)] * 1e9;
    const ratio = occupied / theirs;
    record('memory', `${row}: process`, occupied / MiB, 'MiB', {
      peer: 'AMD Quark, its table', peer_value: theirs / MiB, ratio, target: `at most 1/${part} of the peer`, holds: ratio <= 1 / part,
    });
  }
  if (held) {
    const over = peak / (held * 1e6);
    record('memory', `${row}: allocated`, peak / MiB, 'MiB', {
      peer: 'weights and largest live set', peer_value: held * 1e6 / MiB, ratio: over, target: `at most ${OVER} of these`, holds: over <= OVER,
    });
  }
  const near = forecast / peak;
  record('memory', `${row}: forecast`, forecast / MiB, 'MiB', {
    peer: 'allocated', peer_value: peak / MiB, ratio: near, target: 'within 15 %', holds: near >= 0.85 && near <= 1.15,
  });
}
