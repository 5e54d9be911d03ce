// Given the ranges, every engine makes the same file: the native program, Node and both browsers,
// with 1, 2 and 4 threads, for each model of the corpus. Weights that learn are the same in both
// browsers. tests/package/command.test.mjs has the options and errors of the command.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { project } from '../package/installed.mjs';
import { corpus, inBrowsers } from './walk.mjs';
import { scratch } from './scratch.mjs';

/** @import { Page } from 'puppeteer-core' */

const native = process.env.OCTET ?? 'octet';
const threads = [1, 2, 4];
const folder = join(scratch, 'same-bytes');

/** A model, how it is quantized, and the checksum of the file that the native program makes. @typedef {{ name: string, ranged: boolean, checksum: string }} Made */
/** @type {Made[]} */
const made = [];

const model = (/** @type {string} */ name) => join(corpus, 'models', `${name}.onnx`);
const ranges = (/** @type {string} */ name) => join(folder, `${name}.json`);
const weightsOnly = ['--scheme', 'weights'];

/** @param {string} program @param {string} name @param {boolean} ranged @param {number} count of threads */
function checksum(program, name, ranged, count) {
  const out = join(folder, 'out.onnx');
  const how = ranged ? ['--ranges', ranges(name)] : weightsOnly;
  execFileSync(program, ['quantize', model(name), ...how, '--threads', String(count), '--out', out, '--quiet'], { stdio: 'pipe' });
  return createHash('sha256').update(readFileSync(out)).digest('hex');
}

/**
 * Calibrates with one sample. Gives `ranges`, or the scheme `weights` for a model whose operators are
 * all in graphs of others, or `refused` for one that is quantized already.
 *
 * @param {string} name
 */
function calibrated(name) {
  const samples = join(corpus, 'samples', name);
  const [first] = existsSync(samples) ? readdirSync(samples).filter((file) => file.endsWith('.npz')).sort() : [];
  const given = first ? ['--samples', join(samples, first)] : ['--demo', '1'];
  const { status, stderr } = spawnSync(native, ['quantize', model(name), ...given, '--save-ranges', ranges(name), '--out', join(folder, 'out.onnx'), '--quiet'], { encoding: 'utf8' });
  if (status === 0) return 'ranges';
  assert.match(stderr, /nothing outside the graphs of|is quantized already/, name);
  return stderr.includes('already') ? 'refused' : 'weights';
}

/** The files of the native program, made once. */
function files() {
  if (made.length > 0) return made;
  mkdirSync(folder, { recursive: true });
  const names = readdirSync(join(corpus, 'models')).filter((file) => file.endsWith('.onnx')).map((file) => file.slice(0, -5)).sort();
  for (const name of names) {
    const how = calibrated(name);
    if (how !== 'refused') made.push({ name, ranged: how === 'ranges', checksum: checksum(native, name, how === 'ranges', 1) });
  }
  assert.ok(made.length >= 15, `the corpus has ${made.length} models`);
  return made;
}

test('the native program makes the same files with any number of threads', () => {
  for (const count of threads.slice(1)) {
    for (const { name, ranged, checksum: wanted } of files()) assert.equal(checksum(native, name, ranged, count), wanted, `${name}, ${count} threads`);
  }
});

test('so does the command in Node', () => {
  const command = join(project(), 'node_modules', '.bin', 'octet-onnx');
  for (const count of threads) {
    for (const { name, ranged, checksum: wanted } of files()) assert.equal(checksum(command, name, ranged, count), wanted, `${name}, ${count} threads`);
  }
});

/** Gives the page functions: a file of the server, an engine with that many threads, a checksum. @param {Page} tab */
const prepared = (tab) => tab.evaluate(() => {
  // A machine of two cores has no more threads by itself.
  Object.defineProperty(navigator, 'hardwareConcurrency', { value: 4, configurable: true });
  /** @type {any} */
  let octet;
  Object.assign(window, {
    fetched: async (/** @type {string} */ path) => (await fetch(path)).blob(),
    engineOf: async (/** @type {number} */ count) => {
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      octet ??= await Octet.start({ threads: count });
      // Firefox under test control does not always start the threads (www/engine.js).
      for (let starts = 0; starts < 5; starts++) {
        octet.threads = count;
        await octet.engine();
        if (octet.threads === count) break;
      }
      return octet;
    },
    checksum: async (/** @type {BufferSource} */ bytes) => {
      const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
      return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    },
  });
});

inBrowsers('files given the ranges', (visit) => {
  const mounts = { '/models/': join(corpus, 'models'), '/ranges/': folder };
  test('are those of the native program with any number of threads', () => visit({ mounts }, async ({ tab }) => {
    await prepared(tab);
    for (const count of threads) {
      for (const { name, ranged, checksum: wanted } of files()) {
        const found = await tab.evaluate(async (name, ranged, count) => {
          const { fetched, engineOf, checksum } = /** @type {any} */ (window);
          const octet = await engineOf(count);
          const open = await octet.open(await fetched(`/models/${name}.onnx`), { name: `${name}.onnx` });
          try {
            if (ranged) await open.calibrateByRanges({ path: 'ranges.json', blob: await fetched(`/ranges/${name}.json`) });
            const { model } = await open.quantize(ranged ? {} : { scheme: 'weights' });
            return [octet.threads, await checksum(model)];
          } finally {
            await open.close();
          }
        }, name, ranged, count);
        assert.deepEqual(found, [count, wanted], `${name}, ${count} threads`);
      }
    }
  }));
});

/** Settings by which weights learn, and the checksum of the first file made with them. */
const learning = [
  { settings: { weights: { type: 'i4' }, rounding: 'gptq', finetune: { algorithm: 'adaround', num_iterations: 100 } }, checksum: '' },
  { settings: { weights: { type: 'i4' }, rounding: 'closed-form', finetune: { algorithm: 'adaquant', num_iterations: 100 } }, checksum: '' },
  { settings: { weights: { type: 'i4' }, rounding: 'gptq', finetune: { blocks: true, num_iterations: 40, activation_scales: true, distillation: 5 } }, checksum: '' },
];

// The native program and Node run the float model with other kernels, so its last bits differ.
inBrowsers('weights that learned', (visit) => {
  const mounts = { '/models/': join(corpus, 'models'), '/samples/': join(corpus, 'samples', 'ppocr_cls') };
  test('are the same in both browsers, with any number of threads', () => visit({ mounts }, async ({ tab }) => {
    await prepared(tab);
    for (const count of threads) {
      for (const one of learning) {
        const { used, learned, checksum } = await tab.evaluate(async (settings, count) => {
          const { fetched, engineOf, checksum } = /** @type {any} */ (window);
          const octet = await engineOf(count);
          const open = await octet.open(await fetched('/models/ppocr_cls.onnx'), { name: 'ppocr_cls.onnx' });
          const samples = await Promise.all(['00', '01', '02', '03', '04', '05', '06', '07'].map(async (name) => ({ path: `${name}.npz`, blob: await fetched(`/samples/${name}.npz`) })));
          try {
            const { tuned } = await open.calibrate(samples, { rounding: settings.rounding, tuning: settings });
            const { model } = await open.quantize(settings);
            return { used: octet.threads, learned: tuned.layers.filter((/** @type {any} */ layer) => layer.taken === 'learned').length, checksum: await checksum(model) };
          } finally {
            await open.close();
          }
        }, one.settings, count);
        assert.ok(learned > 0, 'no layer learned');
        one.checksum ||= checksum;
        assert.deepEqual([used, checksum], [count, one.checksum], `${JSON.stringify(one.settings)}, ${count} threads`);
      }
    }
    assert.equal(new Set(learning.map(({ checksum }) => checksum)).size, learning.length);
  }));
});
