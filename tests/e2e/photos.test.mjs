// A detector for any height and width with a folder of photos, some of them unusable: from the drop
// to the download.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { detector, png } from './model.mjs';
import { inBrowsers, out } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** Metadata like that of an Ultralytics export. */
const metadata = { author: 'Ultralytics', task: 'detect', stride: '32', imgsz: '[64, 96]', names: "{0: 'cat', 1: 'dog'}" };
/** A truncated JPEG. */
const broken = Buffer.from('ffd8ffe000104a46494600010100000100010000ffc0000b08004000600103', 'hex');

const fitting = { 'a.png': png(64, 128), 'b.png': png(96, 64) };
const odd = { 'c.png': png(90, 100), 'd.png': png(57, 33) };

/** @param {Visit} visit @param {string} selector */
const value = (visit, selector) => visit.tab.$eval(selector, (field) => /** @type {HTMLInputElement} */ (field).value);

/** @param {Visit} visit @param {string} selector @param {string} text as a person types it */
const type = (visit, selector, text) => visit.tab.$eval(selector, (field, typed) => {
  /** @type {HTMLInputElement} */ (field).value = typed;
  field.dispatchEvent(new Event('change', { bubbles: true }));
}, text);

inBrowsers('photos of any size', (visit, name) => {
  test('size, fit and values are proposed, the broken one is skipped, and the run goes through', () => visit({}, async (visit) => {
    await visit.drop({ 'best.onnx': detector(metadata), ...fitting, ...odd, 'broken.jpg': broken });
    await visit.says('#unusable', /broken\.jpg/);
    assert.match(await visit.text('#unusable'), /1 of 5 samples can’t be used.*broken\.jpg: can't be read: it is truncated/s);
    assert.deepEqual([await value(visit, '#image-height'), await value(visit, '#image-width')], ['64', '96']);
    assert.deepEqual([await value(visit, '#resize'), await value(visit, '#preset'), await value(visit, '#pad')], ['letterbox', 'unit', '114']);
    assert.match(await visit.text('#proposal'), /metadata state it: imgsz \(sure\)/);
    await visit.says('.sample table', /1×3×64×96/);
    for (const [width, height] of [[1280, 1100], [390, 1400]]) {
      await visit.tab.setViewport({ width, height });
      await visit.tab.$eval('#unusable', (list) => list.scrollIntoView());
      await visit.tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `photos-${name}-${width}`)}.png`) });
    }
    await visit.tab.setViewport({ width: 1280, height: 900 });
    await visit.press('Skip this one');
    await visit.tab.waitForFunction(() => !document.querySelector('#unusable'));
    assert.match(await visit.text('#skipped'), /1 sample left out.*broken\.jpg/s);
    await visit.quantize();
    assert.match(await visit.text('#result-facts'), /4 samples/);
    assert.equal(await visit.tab.$('#left-out'), null);
    const report = (await visit.downloaded('.yaml')).toString();
    assert.match(report, /resize: "letterbox"/);
    assert.match(report, /skipped:\n\s+- sample: "broken\.jpg"\n\s+reason: .*truncated/);
    assert.ok((await visit.downloaded('.onnx')).length > 1000);
  }));

  test('left as they are, those that the model refuses are named and left out, and a comparison goes on with the others', () => visit({}, async (visit) => {
    await visit.drop({ 'best.onnx': detector(), ...fitting, ...odd });
    await visit.says('.sample table', /1×3×640×640/);
    await visit.tab.select('#resize', 'none');
    await visit.says('#unusable', /d\.png/);
    const said = await visit.text('#unusable');
    assert.match(said, /2 of 4 samples can’t be used/);
    assert.match(said, /c\.png.*doesn't accept the shape \[1, 3, 100, 90\].*Concat \(node `join`\).*choose a size/s);
    assert.match(await visit.text('#image-size-note'), /multiples of 32/);
    await visit.says('.sample table', /1×3×128×64/);
    await visit.says('#run-why', /Your file is not changed/);
    await visit.quantize();
    assert.match(await visit.text('#left-out'), /2 samples could not be run and were left out.*c\.png.*d\.png/s);
    assert.match(await visit.text('#result-facts'), /2 samples/);
    assert.equal(await visit.tab.$('#partial'), null);
    const report = (await visit.downloaded('.yaml')).toString();
    assert.match(report, /2 of 4 samples were left out/);
    await visit.measureBoth();
    await visit.says('[aria-labelledby=latency-title]', /10 runs each/);
    assert.equal(await visit.tab.$('.problem'), null);
  }));

  test('a size that no photo can run at blames the size, and the proposal is a click away', () => visit({}, async (visit) => {
    await visit.drop({ 'best.onnx': detector(metadata), ...fitting });
    await visit.says('.sample table', /1×3×64×96/);
    await type(visit, '#image-height', '100');
    await visit.says('#run-why', /None of the samples can be used.*\[1, 3, 100, 96\].*choose a size that it accepts/s);
    assert.match(await visit.text('#image-size-note'), /multiples of 32: 96 × 96/);
    assert.equal(await visit.tab.$eval('#image-height', (field) => field.getAttribute('aria-invalid')), 'true');
    await visit.tab.$eval('#as-proposed', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.says('#run-why', /Your file is not changed/);
    assert.equal(await value(visit, '#image-height'), '64');
    // The document contains the preprocessing and restores it.
    assert.match(await value(visit, '#document'), /images:\n {2}preset: unit\n[^]*resize: letterbox/);
    await visit.quantize();
  }));
});
