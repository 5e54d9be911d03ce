// The verdict on a result: it comes with each run, says why, and its next step is a button.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convolution, npy } from './model.mjs';
import { inBrowsers } from './walk.mjs';

const picture = (/** @type {number} */ index) => npy(Float32Array.from({ length: 48 }, (_, i) => (((i + index) * 7) % 19) / 9 - 1), [1, 3, 4, 4]);

inBrowsers('the verdict', (visit) => {
  test('a run is measured by itself, and the verdict stands above the figures', () => visit({}, async (visit) => {
    await visit.quantized(convolution(), [0, 1, 2, 3].map(picture));
    await visit.says('#verdict', /^Ship it.*y: SQNR: \d+\.\d dB \(95 % interval \d+\.\d dB to \d+\.\d dB\); at least 20\.0 dB is required/);
    assert.equal(await visit.tab.$('#next-step'), null);
    // The time was not asked for.
    assert.match(await visit.text('.headlines'), /Inference time–not measured yet/);
    await visit.says('#measure-both', /Measure the time/);
    // The report has it, too, once the layers are compared.
    await visit.judged();
    const report = (await visit.downloaded('.yaml')).toString();
    assert.match(report, /verdict:\s+decision: "ship"/);
  }));

  test('one sample decides nothing; more are asked for', () => visit({}, async (visit) => {
    await visit.quantized(convolution(), [picture(0)]);
    await visit.says('#verdict', /^Look before you ship it.*on one sample.*Next: compare on at least 2 samples/);
  }));

  test('a coarse model has a next step, which is applied and judged by one click', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), [0, 1, 2, 3].map(picture));
    await tab.evaluate(async () => {
      const { adopt } = await import(/** @type {string} */ ('./www/features/settings/undo.js'));
      adopt({ activations: { type: 'u4' }, weights: { type: 'i4' } }, { now: true });
    });
    await visit.shows(2);
    await tab.waitForSelector('#verdict:not([data-decision=ship]) #next-step');
    assert.match(await visit.text('#verdict'), /(16 bits for conv|Keep conv float).*It causes [\d.]+ % of the error/);
    await tab.click('#next-step');
    await visit.shows(3);
    await tab.waitForSelector('[data-decision=ship], [data-decision=look]:not(:has(#next-step))');
    await visit.press('Undo');
    await visit.shows(2);
    await tab.waitForSelector('#next-step');
  }));
});
