// The check in the real runtime: both models in onnxruntime-web, on the samples of the page. A double
// of the runtime damages one node, and the search names it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { convolution, dense, detector, encoder, npy } from './model.mjs';
import { inBrowsers, scratch } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** Samples of some shape that differ. @param {number[]} shape */
const samplesOf = (shape) => [0, 1, 2, 3].map((index) => {
  const size = shape.reduce((product, side) => product * side, 1);
  return npy(Float32Array.from({ length: size }, (_, i) => (((i + index) * 7) % 19) / 9 - 1), shape);
});

/** Checks the result that is on the page. @param {Visit} visit */
async function checked({ tab }) {
  await tab.waitForSelector('#runtime-start');
  await tab.click('#runtime-start');
  await tab.waitForSelector('#runtime-stop:not([hidden])');
  await tab.waitForSelector('#runtime-stop[hidden]');
}

/** The built packages with the double in place of the runtime. `damage` sets what it damages. @param {string} name */
function doubled(name) {
  const folder = join(scratch, `doubled ${name}`);
  const inside = join(folder, 'vendor', 'onnxruntime-web');
  mkdirSync(inside, { recursive: true });
  const link = (/** @type {string} */ from, /** @type {string} */ to, /** @type {string[]} */ except) => {
    for (const name of readdirSync(from)) if (!except.includes(name)) symlinkSync(join(from, name), join(to, name));
  };
  const built = resolve('pkg');
  link(built, folder, ['vendor']);
  link(join(built, 'vendor'), join(folder, 'vendor'), ['onnxruntime-web']);
  link(join(built, 'vendor', 'onnxruntime-web'), inside, ['ort.wasm.min.mjs']);
  copyFileSync(join(built, 'vendor', 'onnxruntime-web', 'ort.wasm.min.mjs'), join(inside, 'real.mjs'));
  const double = readFileSync(new URL('damaged-runtime.mjs', import.meta.url), 'utf8');
  return { folder, damage: (/** @type {object} */ what) => writeFileSync(join(inside, 'ort.wasm.min.mjs'), double.replace('DAMAGE', JSON.stringify(what))) };
}

inBrowsers('the check in the real runtime', (visit) => {
  test('loads when it is asked for, and tells load, time and distance of both models', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'small.onnx': convolution() });
    await tab.waitForSelector('#card-title');
    await tab.click('#tab-runtime');
    await visit.says('#runtime-why', /Quantize first/);
    await tab.click('#tab-overview');
    await visit.quantized(convolution(), samplesOf([1, 3, 4, 4]));
    await visit.judged();
    await tab.click('#tab-runtime');
    assert.ok(!visit.requests.some((url) => url.includes('onnxruntime-web')), 'the runtime was loaded before it was asked for');
    await checked(visit);
    assert.match(await visit.text('#runtime-summary'), /loads, and its answers are those of Octet/);
    assert.match(await visit.text('#runtime-outputs'), /WASMy(equal|\d+\.\d dB)\d+\.\d dBas Octet, but for rounding/);
    await tab.click('#runtime-save');
    const { rows, ...saved } = JSON.parse((await visit.saved('small_int8.runtimes.json')).toString());
    assert.deepEqual([saved.model, saved.samples, saved.firstWrongNode], ['small_int8.onnx', 4, undefined]);
    const wasm = rows.find((/** @type {any} */ row) => row.provider === 'wasm');
    assert.match(wasm.version, /^\d+\.\d+\.\d+$/);
    for (const one of [wasm.float, wasm.quantized]) assert.ok(one.loads && one.lowMs <= one.medianMs && one.medianMs <= one.highMs && one.outputs[0].octetDecibels > 60, JSON.stringify(one));
  }));
});

/** Damages of a node: an operator with a number follows it. */
const damages = [{ operator: 'Mul', value: 0.8 }, { operator: 'Mul', value: 0 }, { operator: 'Add', value: 0.4 }, { operator: 'Mul', value: -1 }];

inBrowsers('a runtime that is wrong', (visit) => {
  const cases = /** @type {const} */ ([
    ['a detector', detector(), samplesOf([1, 3, 64, 64]), ['conv0', 'conv3', 'enlarge', 'join', 'head']],
    ['an encoder', encoder(), samplesOf([1, 24]), ['dense', 'tanh', 'softmax']],
    ['a convolution', convolution(), samplesOf([1, 3, 4, 4]), ['conv']],
    ['dense layers', dense({ layers: 6, side: 48 }).model, samplesOf([1, 48]), ['dense1', 'dense4', 'dense5']],
  ]);
  for (const [name, model, samples, nodes] of cases) {
    test(`the damaged node of ${name} is named, with a reproduction`, async () => {
      const { folder, damage } = doubled(name);
      damage({ node: 'nobody', ...damages[0] });
      await visit({ mounts: { '/pkg/': folder } }, async (visit) => {
        const { tab } = visit;
        await visit.quantized(model, samples);
        await visit.judged();
        await tab.click('#tab-runtime');
        await checked(visit);
        assert.match(await visit.text('#runtime-summary'), /its answers are those of Octet/);
        for (const [seed, node] of nodes.entries()) {
          damage({ node, ...damages[seed % damages.length] });
          await checked(visit);
          assert.equal(await tab.$eval('#runtime-culprit', (found) => /** @type {HTMLElement} */ (found).dataset.node).catch(String), node);
          assert.match(await visit.text('#runtime-summary'), new RegExp(`answers differently with WASM. The first node that differs is ${node} `));
        }
        await tab.click('#runtime-reproduction');
        const archive = join(scratch, 'reproduction.zip');
        writeFileSync(archive, await visit.saved('small_int8.reproduction.zip'));
        const unpacked = join(scratch, `reproduction of ${name}`);
        execFileSync('python3', ['-m', 'zipfile', '-e', archive, unpacked]);
        for (const file of ['inputs', 'octet', 'runtime']) execFileSync('python3', ['-m', 'zipfile', '-t', join(unpacked, `${file}.npz`)]);
        assert.deepEqual(readdirSync(unpacked).sort(), ['README.txt', 'inputs.npz', 'model.onnx', 'octet.npz', 'runtime.npz']);
        assert.match(readFileSync(join(unpacked, 'README.txt'), 'utf8'), new RegExp(`^Node ${nodes.at(-1)} `));
        // The real runtime loads the node by itself.
        const { InferenceSession } = await import('onnxruntime-web');
        const part = await InferenceSession.create(readFileSync(join(unpacked, 'model.onnx')));
        assert.equal(part.outputNames.length, 1);
      });
    });
  }
}, ['chromium']);
