// GPTQ rounding with its extra pass, on the page and through `www/octet.js`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convolution, dense, npy } from './model.mjs';
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

  test('fine-tuning shows each layer with its loss, then a table and a verdict; it can be cancelled', () => visit({}, async (visit) => {
    const { tab } = visit;
    const rows = [0, 1, 2, 3, 4, 5, 6, 7].map((index) => npy(new Float32Array(32).map((_, k) => Math.sin(index * 3 + k / 5) + ((k * 7 + index) % 5) / 20), [1, 32]));
    await visit.quantized(dense({ layers: 4, side: 32 }).model, rows);
    assert.equal(await tab.$('#learned'), null);
    const settings = async (/** @type {string} */ text) => {
      await tab.$eval('#document', (area, written) => (/** @type {HTMLTextAreaElement} */ (area).value = written), text);
      await tab.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
      await visit.says('#changed', /need a new calibration/);
    };
    const stages = await visit.stages();
    await tab.evaluate(() => {
      const seen = (/** @type {any} */ (window).losses = new Set());
      new MutationObserver(() => seen.add(document.querySelector('#learned-so-far svg')?.getAttribute('aria-label'))).observe(document.body, { childList: true, subtree: true });
    });
    await settings('weights: {type: i4}\nfinetune: {algorithm: adaround, num_iterations: 200}\n');
    await visit.quantize();
    await visit.says('#learned', /^The learned weights are (used|dropped)On samples that did not teach, the outputs have [\d.]+ dB[^]*What was learned from 8 samples/);
    assert.equal(await tab.$$eval('#learned tbody tr', (found) => found.length), 4);
    const text = await visit.text('#learned table');
    assert.match(text, /dense0MatMul(learned|none, no gain)[\d.e-]+[\d.e-]+-?[\d.]+ dB/);
    const losses = await tab.evaluate(() => [.../** @type {any} */ (window).losses].join('; '));
    assert.match(losses, /dense0: after its steps the loss is [\d.e-]+ of its start/);
    assert.match(await stages(), /Fine-tuning: [1-4] of 4/);

    await tab.select('#finetune', 'blocks');
    await visit.says('#changed', /need a new calibration/);
    assert.equal(await tab.$eval('#finetune', (field) => /** @type {HTMLSelectElement} */ (field).value), 'blocks');
    await visit.quantize();
    await visit.says('#learned', /of [1-4] blocks?/);

    // Steps for minutes: the run ends only because it is cancelled.
    await settings('weights: {type: i4}\nfinetune: {algorithm: adaround, num_iterations: 5000000}\n');
    await visit.start();
    await visit.says('#progress-title', /Fine-tuning/);
    await tab.click('#cancel');
    await visit.says('#changed', /need a new calibration/);
    assert.match(await visit.text('#learned'), /learned weights are/, 'the result before is kept');
  }));

  test('a reload in mid-run loses no layer that has learned: the next run goes on, with the same result', () => visit({}, async (visit) => {
    const { tab } = visit;
    const rows = [0, 1, 2, 3, 4, 5, 6, 7].map((index) => npy(new Float32Array(32).map((_, k) => Math.sin(index * 3 + k / 5) + ((k * 7 + index) % 5) / 20), [1, 32]));
    const { model } = dense({ layers: 6, side: 32 });
    await visit.quantized(model, rows);
    const settings = { weights: { type: 'i4' }, finetune: { algorithm: 'adaround', num_iterations: 40_000 } };
    await tab.$eval('#document', (area, written) => (/** @type {HTMLTextAreaElement} */ (area).value = written), JSON.stringify(settings));
    await tab.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.says('#changed', /need a new calibration/);
    // The page itself reloads as soon as a layer has learned: a slow test would come too late.
    await tab.evaluate(() => new MutationObserver((_, observer) => {
      if (!document.querySelector('#learned-so-far tbody')?.textContent?.includes('dense')) return;
      observer.disconnect();
      location.reload();
    }).observe(document.body, { subtree: true, childList: true, characterData: true }));
    await visit.start();
    await tab.waitForSelector('#restore');
    await tab.click('#restore');
    await tab.waitForSelector('#done-title');
    await visit.says('#left', /8 samples/);
    await visit.start();
    await visit.finished();
    await visit.says('#resumed', /^[1-5] layers? had learned in an earlier run with the same/);
    const resumed = await visit.downloaded('.onnx');
    const whole = await tab.evaluate(async (file, samples, document_) => {
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      const octet = await Octet.start({ threads: 1 });
      const files = samples.map((bytes, index) => ({ path: `sample${index}.npy`, blob: new Blob([new Uint8Array(bytes)]) }));
      const open = await octet.open(new Uint8Array(file), { name: 'small.onnx' });
      await open.calibrate(files, { tuning: document_ });
      const result = await open.quantize(document_);
      octet.close();
      return [...result.model];
    }, [...model], rows.map((row) => [...row]), settings);
    assert.ok(resumed.equals(Buffer.from(whole)), 'the run that went on gives other bytes');
  }));

  test('values between two layers rest in a file of the browser, which is gone after the run; the result is the same', () => visit({}, async (visit) => {
    const rows = [0, 1, 2, 3, 4, 5, 6, 7].map((index) => npy(new Float32Array(32).map((_, k) => Math.sin(index * 3 + k / 5) + ((k * 7 + index) % 5) / 20), [1, 32]));
    const found = await visit.tab.evaluate(async (model, samples) => {
      const root = await navigator.storage.getDirectory();
      const names = async () => {
        const all = [];
        for await (const name of (await root.getDirectoryHandle('values', { create: true })).keys()) all.push(name);
        return all;
      };
      // As of a page that was left in its run.
      await (await root.getDirectoryHandle('values', { create: true })).getFileHandle('left', { create: true });
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      const octet = await Octet.start();
      const files = samples.map((bytes, index) => ({ path: `s${index}.npy`, blob: new Blob([new Uint8Array(bytes)]) }));
      const open = await octet.open(new Uint8Array(model), { name: 'small.onnx' });
      const [models, during] = [/** @type {number[][]} */ ([]), /** @type {string[]} */ ([])];
      for (const level of [1, 2]) {
        const settings = { weights: { type: 'i4' }, finetune: { algorithm: 'adaround', num_iterations: 20_000, mem_opt_level: level } };
        const run = open.calibrate(files, { tuning: settings });
        for (let runs = true; level === 2 && runs;) {
          during.push(...await names());
          runs = await Promise.race([run.then(() => false), new Promise((next) => setTimeout(() => next(true), 10))]);
        }
        await run;
        models.push([...(await open.quantize(settings)).model]);
      }
      octet.close();
      return { models, during: [...new Set(during)].filter((name) => name !== 'left').length, after: await names() };
    }, [...dense({ layers: 4, side: 32 }).model], rows.map((row) => [...row]));
    assert.deepEqual(found.models[0], found.models[1]);
    assert.equal(found.during, 1, 'there was no file');
    assert.deepEqual(found.after, []);
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
