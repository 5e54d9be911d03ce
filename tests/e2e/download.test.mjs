// The download sheet: names, variants, settings with the preprocessing, the command, and code.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { dense, levels, npy, png } from './model.mjs';
import { inBrowsers, out } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** @param {Visit} visit @param {string} selector */
const click = ({ tab }, selector) => tab.$eval(selector, (button) => /** @type {HTMLElement} */ (button).click());

inBrowsers('the download sheet', (visit, name) => {
  test('a result has other names, code that names it, the command and the preprocessing', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'levels.onnx': levels(), 'a.png': png(8, 8), 'b.png': png(9, 8) });
    await visit.says('#run-why', /Your file is not changed/);
    await tab.select('#preset', 'unit');
    await tab.select('#order', 'bgr');
    await click(visit, '#tab-download');
    await visit.says('#panel-download', /There is no result yet/);
    await click(visit, '#tab-overview');
    await visit.quantize();
    await click(visit, '#to-download');
    await visit.says('#snippet', /onnxruntime.*levels_int8\.onnx/s);
    assert.match(await visit.text('#download-command'), /^octet quantize levels\.onnx --samples SAMPLES --config '.*"images":\{.*"order":"bgr","scale":0\.0039/);
    assert.match(await visit.text('#download-settings'), /images:\n[^]*order: bgr/);
    const plain = await visit.downloaded('levels_int8.onnx');
    await tab.select('#download-name', 'levels_quantized.onnx');
    await visit.says('#snippet', /levels_quantized\.onnx/);
    assert.ok((await visit.downloaded('levels_quantized.onnx')).equals(plain));
    await tab.select('#snippet-kind', 'onnxruntime-web');
    await visit.says('#snippet', /from 'onnxruntime-web'/);
    await tab.select('#snippet-kind', 'transformers.js');
    await visit.says('#snippet', /dtype: 'q8'/);
    await tab.select('#snippet-kind', 'samples');
    await visit.says('#snippet', /numpy/);
    for (const [width, scheme] of /** @type {[number, 'light' | 'dark'][]} */ ([[1280, 'light'], [1280, 'dark'], [390, 'light']])) {
      await tab.setViewport({ width, height: 1400 });
      if (name === 'chromium') await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `download-${name}-${width}-${scheme}`)}.png`) });
    }
  }));

  test('variants are made when they are wanted, and the result stays as it is', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(dense({ layers: 2, side: 64 }).model, [npy(new Float32Array(64).map((_, k) => Math.sin(k)), [1, 64])]);
    await visit.judged();
    const report = await visit.downloaded('.yaml');
    const shown = await visit.shown();
    await click(visit, '#tab-download');
    await tab.waitForSelector('[data-variant=_q4]');
    const made = [];
    for (const ending of ['_quantized', '_fp16', '_q4', '_q4f16', '_int8']) {
      await tab.waitForSelector(`[data-variant=${ending}]:not([disabled])`);
      await click(visit, `[data-variant=${ending}]`);
      made.push((await visit.saved(`small${ending}.onnx`)).length);
    }
    const [dynamic, halves, blocks, blocksOfHalves, integers] = made;
    assert.ok(blocks < dynamic && blocksOfHalves < halves && integers > 0, made.join(', '));
    await click(visit, '#tab-overview');
    assert.equal(await visit.shown(), shown);
    assert.ok((await visit.downloaded('.yaml')).equals(report));
    // Exports describe the result again, not the last variant.
    await visit.judged();
    assert.equal(await tab.$('.problem'), null);
  }));

  test('a variant that the model can’t have says why', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'levels.onnx': levels(), 'a.png': png(8, 8) });
    await visit.says('#run-why', /Your file is not changed/);
    await visit.quantize();
    await click(visit, '#tab-download');
    await tab.waitForSelector('[data-variant=_fp16]:not([disabled])');
    await click(visit, '[data-variant=_fp16]');
    assert.ok((await visit.saved('levels_fp16.onnx')).length > 100);
    assert.equal(await tab.$eval('#variant-failure', (part) => part.hasAttribute('hidden')), true);
  }));
});
