// Half precision with samples: activations beyond its range stay float32, on the page, in its
// command line, and in the npm package's API.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convolution, dense, npy } from './model.mjs';
import { inBrowsers } from './walk.mjs';

/** Samples whose first product is far beyond 65504. @param {number} index */
const far = (index) => npy(new Float32Array(32).map((_, k) => 3e5 * Math.sin(index + k)), [1, 32]);
const samples = { 'a.npy': far(0), 'b.npy': far(1) };
const kept = /too large for float16 on the samples/;

inBrowsers('half precision', (visit) => {
  test('loaded samples are run, what is too large for halves stays float32, and nothing is run twice', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'small.onnx': dense({ layers: 2, side: 32 }).model });
    await tab.waitForSelector('#card-title');
    await tab.select('#scheme', 'float16');
    // Without samples nothing is calibrated, and everything becomes half.
    await visit.says('#run', /^Quantize$/);
    await visit.quantize();
    assert.doesNotMatch(await visit.text('.result'), kept);
    const blind = await visit.downloaded('.onnx');
    await visit.drop(samples);
    await visit.says('#changed', /need a new calibration/);
    assert.match(await visit.text('#command-line'), /--samples SAMPLES/);
    const stages = await visit.stages();
    await visit.quantize();
    await visit.says('.result', kept);
    assert.match(await stages(), /Calibrating/);
    assert.match(await visit.text('#result-facts'), /2 samples/);
    const seeing = await visit.downloaded('.onnx');
    assert.ok(!seeing.equals(blind));
    // Another treatment of what is too large needs no new calibration.
    const [again, first] = [await visit.stages(), await visit.shown()];
    await tab.select('#overflow', 'clip');
    await visit.shows(first + 1);
    assert.doesNotMatch(await again(), /Calibrating/);
    await tab.select('#target', 'qnn');
    await visit.shows(first + 2);
    assert.match(await visit.text('#command-line'), /"overflow":"clip".*"target":"qnn"/);
    await tab.select('#target', 'any');
    await tab.select('#overflow', 'float32');
    await visit.shows(first);
    // A scheme that uses none, and back: the calibration serves.
    await tab.select('#scheme', 'weights');
    await visit.shows(first + 3);
    await tab.select('#scheme', 'float16');
    await visit.shows(first);
    assert.ok((await visit.downloaded('.onnx')).equals(seeing));
  }));

  test('a calibration for integers serves halves, and blocks between halves take samples, too', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(dense({ layers: 2, side: 32 }).model, [0, 1].map(far));
    const [stages, before] = [await visit.stages(), await visit.shown()];
    await tab.select('#scheme', 'float16');
    await visit.shows(before + 1);
    await visit.says('.result', kept);
    assert.doesNotMatch(await stages(), /Calibrating/);
    await tab.$eval('#document', (area) => (/** @type {HTMLTextAreaElement} */ (area).value = 'scheme: blocks\nblocks: {activations: float16}\n'));
    await tab.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.shows(before + 2);
    assert.match(await visit.text('#result-facts'), /2 samples/);
    assert.match(await visit.text('#command-line'), /--samples SAMPLES/);
  }));

  test('random samples are not used, and the command line names none', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'small.onnx': convolution() });
    await tab.waitForSelector('#card-title');
    await visit.press('Try with random data');
    await visit.says('#run-why', /Your file is not changed/);
    await tab.select('#scheme', 'float16');
    await visit.says('#run', /^Quantize$/);
    assert.doesNotMatch(await visit.text('#command-line'), /--samples|--demo/);
    const stages = await visit.stages();
    await visit.quantize();
    assert.doesNotMatch(await stages(), /Calibrating/);
  }));
});
