// The check in the real runtime: both models in onnxruntime-web, on the samples of the page. A double
// of the runtime damages one node, and the page offers a reproduction.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { convolution, dense, encoder } from './model.mjs';
import { checked, doubled, named, older, samplesOf } from './real-runtime.mjs';
import { inBrowsers, out, scratch } from './walk.mjs';

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

inBrowsers('the check with WebGPU and WebNN', (visit) => {
  test('tells time, distance and the nodes that fell back, or why it was not tried, and names a damaged node', async () => {
    const { folder, damage } = doubled('an encoder with WebGPU', 'ort.webgpu.min.mjs');
    await visit({ mounts: { '/pkg/': folder } }, async (visit) => {
      const { tab } = visit;
      await visit.quantized(encoder(), samplesOf([1, 24]));
      await visit.judged();
      await tab.click('#tab-runtime');
      await tab.waitForSelector('#runtime-providers');
      for (const name of ['webgpu', 'webnn']) await tab.click(`#runtime-providers [name=${name}]`);
      assert.ok(!visit.requests.some((url) => url.includes('onnxruntime-web')), 'the runtime was loaded before it was asked for');
      await checked(visit);
      assert.match(await visit.text('#runtime-summary'), /loads, and its answers are those of Octet/);
      await tab.click('#runtime-save');
      const { rows } = JSON.parse((await visit.saved('small_int8.runtimes.json')).toString());
      const [wasm, gpu, webnn] = rows;
      assert.deepEqual([wasm.provider, gpu.provider, webnn.provider], ['wasm', 'webgpu', 'webnn']);
      assert.match(gpu.note, /swiftshader, in software/);
      assert.match(webnn.notTried, /This browser has WebNN, but can’t use it: .*not supported/);
      for (const one of [gpu.float, gpu.quantized]) assert.ok(one.loads && one.medianMs > 0 && one.outputs.every((/** @type {any} */ { octetDecibels }) => octetDecibels > 40), JSON.stringify(one));
      // What this release has no kernel for.
      assert.equal(gpu.float.fellBack.length, 0);
      assert.ok(gpu.quantized.fellBack.includes('QuantizeLinear (d_QuantizeLinear)') && gpu.quantized.nodesOfProvider > 0, JSON.stringify(gpu.quantized));
      assert.match(await visit.text('#runtime-result'), /\d+ of \d+ nodes fell back to the processor: \d+ QuantizeLinear/);
      await tab.click('#tab-download');
      await tab.waitForSelector('#tried');
      const tried = await visit.text('#tried');
      assert.match(tried, /Octetthis pageyescompared with float/);
      assert.match(tried, /onnxruntime-web [\d.]+WASMyes, in .*as Octet \(.*onnxruntime-web [\d.]+WebGPUyes, in .*as Octet \(.*onnxruntime-webWebNNnot tried here/);
      for (const [width, scheme] of /** @type {[number, 'light' | 'dark'][]} */ ([[1280, 'light'], [1280, 'dark'], [390, 'light']])) {
        await tab.setViewport({ width, height: 1400 });
        await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
        for (const panel of ['download', 'runtime']) {
          await tab.$eval(`#tab-${panel}`, (button) => /** @type {HTMLElement} */ (button).click());
          await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `tried-${panel}-${width}-${scheme}`)}.png`) });
        }
      }
      await tab.$eval('#runtime-providers [name=wasm]', (box) => /** @type {HTMLElement} */ (box).click());
      damage({ node: 'dense', operator: 'Mul', value: 0.7 });
      await checked(visit);
      assert.match(await visit.text('#runtime-summary'), /answers differently with WebGPU. The first node that differs is dense /);
      assert.match(await visit.text('#runtime-result'), /WASMnot tried hereIt was not chosen/);
      assert.match(await visit.text('#tried'), /WASMnot tried hereIt was not chosen.*WebGPUyes, in .*differ from Octet \(.* from dense on/);
    });
  });
}, ['chromium with WebGPU']);

inBrowsers('a runtime that is wrong', (visit) => {
  test('gives a reproduction of the damaged node', async () => {
    const { folder, damage } = doubled('an encoder');
    damage({ node: 'dense', operator: 'Mul', value: 0.8 });
    await visit({ mounts: { '/pkg/': folder } }, async (visit) => {
      const { tab } = visit;
      await visit.quantized(encoder(), samplesOf([1, 24]));
      await visit.judged();
      await tab.click('#tab-runtime');
      await checked(visit);
      assert.equal(await named(visit), 'dense');
      assert.match(await visit.text('#runtime-summary'), /answers differently with WASM. The first node that differs is dense /);
      await tab.click('#runtime-reproduction');
      const archive = join(scratch, 'reproduction.zip');
      writeFileSync(archive, await visit.saved('small_int8.reproduction.zip'));
      const unpacked = join(scratch, 'reproduction of a node');
      execFileSync('python3', ['-m', 'zipfile', '-e', archive, unpacked]);
      for (const file of ['inputs', 'octet', 'runtime']) execFileSync('python3', ['-m', 'zipfile', '-t', join(unpacked, `${file}.npz`)]);
      assert.deepEqual(readdirSync(unpacked).sort(), ['README.txt', 'inputs.npz', 'model.onnx', 'octet.npz', 'runtime.npz']);
      assert.match(readFileSync(join(unpacked, 'README.txt'), 'utf8'), /^Node dense /);
      // The real runtime loads the node by itself.
      const { InferenceSession } = await import('onnxruntime-web');
      const part = await InferenceSession.create(readFileSync(join(unpacked, 'model.onnx')));
      assert.equal(part.outputNames.length, 1);
    });
  });
}, ['chromium']);

// Not a double: this release of onnxruntime-web dequantizes some tensors wrongly with WebGPU.
inBrowsers('an older runtime that is wrong by itself', (visit) => {
  test('is found with WebGPU: the model loads, answers otherwise, and the first wrong node is named', () => visit({ mounts: { '/pkg/': older() } }, async (visit) => {
    const { tab } = visit;
    await visit.quantized(dense({ layers: 6, side: 64 }).model, samplesOf([1, 64]));
    await visit.judged();
    await tab.click('#tab-runtime');
    await tab.waitForSelector('#runtime-providers');
    await tab.click('#runtime-providers [name=webgpu]');
    await checked(visit);
    assert.match(await visit.text('#runtime-summary'), /answers differently with WebGPU. The first node that differs is x_DequantizeLinear \(DequantizeLinear\)/);
    await tab.click('#tab-download');
    await tab.waitForSelector('#tried');
    assert.match(await visit.text('#tried'), /onnxruntime-web 1\.20\.1WASMyes, in .*as Octet \(.*onnxruntime-web 1\.20\.1WebGPUyes, in .*differ from Octet \(.* from x_DequantizeLinear on/);
  }));
}, ['chromium with WebGPU']);
