// A reload restores the work; one click deletes all stored data.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { convolution, npy } from './model.mjs';
import { inBrowsers, scratch } from './walk.mjs';

inBrowsers('what is kept', (visit) => {
  test('model, samples, settings and result survive a reload, and are forgotten at will', () => visit({}, async (visit) => {
    const { tab } = visit;
    tab.setDefaultTimeout(240_000);
    const sample = join(scratch, 'kept.npy');
    writeFileSync(sample, npy(Float32Array.from({ length: 48 }, (_, i) => ((i * 7) % 19) / 9 - 1), [1, 3, 4, 4]));
    await visit.drop({ 'kept.onnx': convolution() });
    await tab.waitForSelector('#card-title');
    await visit.choose('choose-samples', sample);
    await tab.select('#method', 'entropy');
    await visit.says('#run-why', /Your file is not changed/);
    await visit.quantize();
    const model = await visit.downloaded('.onnx');
    await visit.stored();
    await tab.goto(visit.server?.url ?? '');
    await visit.says('#stored', /kept\.onnx/);
    await tab.click('#restore');
    await tab.waitForSelector('#done-title');
    assert.match(await visit.text('#left'), /1 sample/);
    assert.equal(await tab.$eval('#method', (field) => /** @type {HTMLSelectElement} */ (field).value), 'entropy');
    assert.deepEqual(await visit.downloaded('.onnx'), model);
    await visit.quantize();
    assert.deepEqual(await visit.downloaded('.onnx'), model);
    await visit.judged();
    assert.ok((await visit.stored()).includes('model'));
    await tab.$eval('#forget', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.says('[role=status]', /is deleted/);
    // Work on the open model goes on, and is not stored.
    const before = await visit.shown();
    await tab.select('#activations', 'i8');
    await visit.shows(before + 1);
    assert.deepEqual(await visit.stored(), []);
    await tab.select('#finetune', 'adaround');
    await visit.says('#changed', /need a new calibration/);
    await visit.quantize();
    const files = await tab.evaluate(async () => {
      const names = [];
      for await (const name of (await navigator.storage.getDirectory()).keys()) names.push(name);
      return names;
    });
    assert.ok(!files.some((name) => /journal/.test(name)), files.join(', '));
    await visit.load();
    assert.equal(await tab.$('#stored'), null);
  }));
});
