// Channel equalization on the page and through `www/octet.js`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { depthwise, npy } from './model.mjs';
import { inBrowsers } from './walk.mjs';

const layers = () => depthwise({ layers: 2, channels: 3, size: 4, kernel: 3, dilation: 1 });

/** The first channel is a hundredth of the last. @param {number} index */
const sample = (index) => npy(new Float32Array(48).map((_, k) => Math.sin(index + k * 3) * 10 ** (Math.floor(k / 16) - 2)), [1, 3, 4, 4]);

const remembers = (/** @type {Buffer} */ file) => file.includes('octet.equalized');

inBrowsers('channels made alike', (visit) => {
  test('chosen on the page after a run the samples are run again, twice, and once when it is taken back', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(layers(), [0, 1, 2].map(sample));
    assert.ok(!remembers(await visit.downloaded('.onnx')));
    const stages = await visit.stages();
    await tab.$eval('#equalize', (box) => /** @type {HTMLElement} */ (box).click());
    await visit.says('#changed', /need a new calibration/);
    await visit.quantize();
    assert.ok(remembers(await visit.downloaded('.onnx')));
    assert.match((await visit.downloaded('.yaml')).toString(), /the output channels of 1 layer/);
    assert.match(await stages(), /Calibrating[^]*Extra pass/);
    await visit.takesNoSamples();
    await tab.$eval('#equalize', (box) => /** @type {HTMLElement} */ (box).click());
    await visit.says('#changed', /need a new calibration/);
    await visit.quantize();
    assert.ok(!remembers(await visit.downloaded('.onnx')));
  }));

  test('through the public interface it must be said when calibrating, and is refused in words where it was not', () => visit({}, async (visit) => {
    const found = await visit.tab.evaluate(async (model, samples) => {
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      const octet = await Octet.start({ threads: 1 });
      const files = samples.map((bytes, index) => ({ path: `s${index}.npy`, blob: new Blob([new Uint8Array(bytes)]) }));
      const open = await octet.open(new Uint8Array(model), { name: 'small.onnx' });
      const caught = (/** @type {any} */ error) => [error.kind, error.message];
      await open.calibrate(files);
      const unseen = await open.quantize({ equalize: true }).catch(caught);
      const wrong = await open.calibrate(files, { equalize: 3 }).catch(caught);
      await open.calibrate(files, { equalize: true, method: 'ort-percentile:99.9' });
      const unsaid = await open.quantize({}).catch(caught);
      const { model: file, summary } = await open.quantize({ equalize: 0.5 });
      await open.compare(file, files);
      octet.close();
      return { unseen, wrong, unsaid, notes: summary.notes };
    }, [...layers()], [0, 1, 2].map((index) => [...sample(index)]));
    assert.equal(found.unseen[0], 'order');
    assert.match(found.unseen[1], /the settings have `equalize: 0.5`, but the calibration used no `equalize`: calibrate again/);
    assert.equal(found.wrong[0], 'settings');
    assert.match(found.wrong[1], /`equalize` must be true, false or a number from 0 to 1/);
    assert.match(found.unsaid[1], /the settings have no `equalize`, but the calibration used `equalize: 0.5`/);
    assert.match(found.notes.at(-1) ?? '', /equalization scaled the output channels/);
  }));
});
