// GPTQ rounding with its extra pass, on the page and through `www/octet.js`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convolution, npy } from './model.mjs';
import { inBrowsers } from './walk.mjs';

/** Images with flat areas, as `.npy`. @param {number} index */
const sample = (index) => npy(new Float32Array(48).map((_, k) => Math.sin(index + Math.floor(k / 8)) + ((k * 7 + index) % 5) / 50), [1, 3, 4, 4]);

inBrowsers('weights rounded together', (visit) => {
  test('chosen on the page after a run, the samples are run again, once more for what the weights meet', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), [0, 1, 2].map(sample));
    const nearest = await visit.downloaded('.onnx');
    const stages = await visit.stages();
    await tab.select('#rounding', 'gptq');
    await visit.says('#changed', /need a new calibration/);
    await visit.quantize();
    const together = await visit.downloaded('.onnx');
    assert.equal(together.length, nearest.length);
    assert.ok(!together.equals(nearest), 'no weight was rounded otherwise');
    assert.match((await visit.downloaded('.yaml')).toString(), /rounding: "?gptq"?[^]*compensated: [\d.]+/);
    assert.match(await stages(), /Calibrating[^]*Extra pass/);
    await visit.takesNoSamples();
  }));

  test('learned weights are chosen on the page, and the samples advance layer by layer', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), [0, 1, 2, 3].map(sample));
    const [stages, before] = [await visit.stages(), await visit.shown()];
    await tab.select('#rounding', 'closed-form');
    await tab.select('#finetune', 'adaround');
    await visit.says('#changed', /need a new calibration/);
    await visit.quantize();
    await visit.shows(before + 1);
    assert.match(await stages(), /Calibrating[^]*fine-tuning/i);
    const found = await tab.evaluate(async (model, samples) => {
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      const octet = await Octet.start({ threads: 1 });
      const files = samples.map((bytes, index) => ({ path: `s${index}.npy`, blob: new Blob([new Uint8Array(bytes)]) }));
      const open = await octet.open(new Uint8Array(model), { name: 'small.onnx' });
      const settings = /** @type {const} */ ({ method: 'auto', weights: { type: 'i4' }, rounding: 'closed-form' });
      await open.calibrate(files);
      const untuned = await open.quantize(settings).catch((/** @type {any} */ error) => error);
      await open.calibrate(files, { tuning: settings });
      const { summary, report } = await open.quantize(settings);
      octet.close();
      return { untuned: [untuned.kind, untuned.message], notes: summary.notes, report };
    }, [...convolution()], [0, 1, 2, 3].map((index) => [...sample(index)]));
    assert.equal(found.untuned[0], 'order');
    assert.match(found.untuned[1], /tune the model with them first/);
    assert.ok(found.notes.some((/** @type {string} */ note) => /learned constants/.test(note)), found.notes.join('; '));
    assert.match(found.report, /tuning:[^]*layers:/);
  }));

  test('through the public interface it must be said when calibrating, and is refused in words where it was not', () => visit({}, async (visit) => {
    const found = await visit.tab.evaluate(async (model, samples) => {
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      const octet = await Octet.start({ threads: 1 });
      const files = samples.map((bytes, index) => ({ path: `s${index}.npy`, blob: new Blob([new Uint8Array(bytes)]) }));
      const open = await octet.open(new Uint8Array(model), { name: 'small.onnx' });
      const blocks = { scheme: 'blocks', blocks: { method: 'gptq' } };
      const unseen = await open.quantize(/** @type {any} */ (blocks)).catch((/** @type {any} */ error) => error);
      await open.calibrate(files);
      const once = await open.quantize({ rounding: 'gptq' }).catch((/** @type {any} */ error) => error);
      await open.calibrate(files, { rounding: 'gptq', method: 'ort-percentile:99.9' });
      const { summary } = await open.quantize({ rounding: 'gptq' });
      octet.close();
      return { unseen: [unseen.kind, unseen.message], once: [once.kind, once.message], tensors: summary.tensors };
    }, [...convolution()], [0, 1, 2].map((index) => [...sample(index)]));
    assert.deepEqual(found.unseen, ['order', 'There are no ranges yet: calibrate this model first.']);
    assert.equal(found.once[0], 'quantize');
    assert.match(found.once[1], /extra pass over the samples; calibrate again with these settings/);
    const weights = found.tensors.filter((/** @type {import('../../www/types.js').QuantizedTensor} */ tensor) => tensor.kind === 'weight');
    assert.equal(weights.length, 1);
    assert.ok(weights[0].compensated > 0, JSON.stringify(weights));
  }));
});
