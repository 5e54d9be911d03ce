// Labels choose among the usual preprocessings of pictures; a choice of the person stands.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { levels, png } from './model.mjs';
import { inBrowsers, out } from './walk.mjs';
import { join } from 'node:path';

/** @import { Visit } from './walk.mjs' */

/** The blue channel has the level of the class; red is one off in every second picture. */
const pictures = Object.fromEntries(Array.from({ length: 12 }, (_, at) => {
  const level = 32 + 64 * (at % 4);
  const red = Math.min(255, level + 64 * (Math.floor(at / 4) % 2));
  return [`p${at}.png`, png(8, 8, (_x, _y, channel) => [red, 128, level][channel])];
}));
/** @param {(at: number) => number} label */
const labels = (label) => ({ 'labels.csv': Buffer.from(Object.keys(pictures).map((name, at) => `${name},${label(at)}\n`).join('')) });

/** @param {Visit} visit @param {string} selector */
const value = (visit, selector) => visit.tab.$eval(selector, (field) => /** @type {HTMLSelectElement} */ (field).value);

inBrowsers('preprocessings by labels', (visit, name) => {
  test('the one that is most often right is taken and said, and the run and the command use it', () => visit({}, async (visit) => {
    await visit.drop({ 'levels.onnx': levels(), ...pictures, ...labels((at) => at % 4) });
    await visit.says('#trial', /Chosen by the labels: with “0 to 255, unscaled, BGR” the float model is right on 12 of 12 pictures; with “ImageNet \(PyTorch, timm\)”, as before, on \d/);
    assert.deepEqual([await value(visit, '#preset'), await value(visit, '#order')], ['raw', 'bgr']);
    assert.match(await visit.text('#trial'), /All \d+ that were tried.*0 to 255, unscaled, BGR1212/s);
    assert.match(await visit.text('#proposal'), /Chosen by the labels; the proposal for this model/);
    assert.match(await visit.text('.preflight'), /Chosen by the labels/);
    await visit.says('#run-why', /Your file is not changed/);
    assert.match(await visit.text('#command-line'), /"images":\{[^}]*"order":"bgr","scale":1,/);
    for (const width of [1280, 390]) {
      await visit.tab.setViewport({ width, height: 1100 });
      await visit.tab.$eval('#picture-settings', (list) => list.scrollIntoView());
      await visit.tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `trial-${name}-${width}`)}.png`) });
    }
    await visit.tab.setViewport({ width: 1280, height: 900 });
    await visit.quantize();
    await visit.judged();
    await visit.says('.headlines', /100 %/);
  }));

  test('pictures before the model, labels that fit nothing, and a choice of the person', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'levels.onnx': levels() });
    await tab.waitForSelector('#card-title');
    await visit.drop({ ...pictures });
    await visit.says('.sample table', /1×3×8×8/);
    assert.equal(await tab.$eval('#trial', (part) => part.hasAttribute('hidden')), true);
    // Labels that belong to no level are no reason for anything.
    await visit.drop(labels((at) => (at * 7 + Math.floor(at / 3)) % 3));
    await visit.says('#trial', /more often than by chance.*The proposal is kept/);
    assert.deepEqual([await value(visit, '#preset'), await value(visit, '#order')], ['imagenet', 'rgb']);
    await tab.select('#preset', 'signed');
    await visit.drop(labels((at) => at % 4));
    await visit.says('#labels-note', /12 of 12 samples have a label/);
    await visit.says('#run-why', /Your file is not changed/);
    assert.equal(await value(visit, '#preset'), 'signed');
    // On demand it is tried again, and replaces the choice.
    await tab.$eval('#try-labels', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.says('#trial', /Chosen by the labels: with “0 to 255, unscaled, BGR”.*with “−1 to 1 \(ViT, Inception\)”, as before/);
    assert.equal(await value(visit, '#preset'), 'raw');
  }));
});
