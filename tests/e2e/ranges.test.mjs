// Ranges of other tools: taken in place of samples, and written from a result.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { convolution } from './model.mjs';
import { samplesOf } from './real-runtime.mjs';
import { inBrowsers, out, scratch } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** @param {Visit} visit @param {string} selector */
const click = ({ tab }, selector) => tab.$eval(selector, (button) => /** @type {HTMLElement} */ (button).click());

/** Saves the ranges of the result on the page. @param {Visit} visit @param {string} format @param {string} name */
async function written(visit, format, name) {
  await visit.tab.select('#ranges-format', format);
  await click(visit, '#save-ranges');
  return await visit.saved(name);
}

inBrowsers('ranges of other tools', (visit) => {
  test('a result’s ranges are saved in each format, and give the same result without samples', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), samplesOf([1, 3, 4, 4]));
    await visit.judged();
    const result = await visit.downloaded('small_int8.onnx');
    await click(visit, '#tab-download');
    await tab.waitForSelector('#save-ranges');
    const own = await written(visit, 'octet', 'small_int8.ranges.json');
    const { x: [low, high], ...rest } = JSON.parse(own.toString());
    assert.ok(low < 0 && high > 0 && Object.keys(rest).length > 0, own.toString());
    // Other tools also ask for the range of what only a Relu reads.
    const cache = JSON.parse((await written(visit, 'onnxruntime', 'small_int8.calibration.json')).toString());
    assert.ok(JSON.stringify(cache).includes('"c"'), JSON.stringify(cache));
    assert.match((await written(visit, 'tensorrt', 'small_int8.cache')).toString(), /^TRT-\d+.*\nx: [0-9a-f]{8}\n/s);
    await visit.says('.ranges-note', /one number for each tensor/);
    assert.ok((await written(visit, 'onnxruntime-flatbuffers', 'small_int8.flatbuffers')).length > 40);
    assert.match((await written(visit, 'onnxruntime-text', 'small_int8.calibration.txt')).toString(), /^x \S+$/m);
    const encodings = await written(visit, 'aimet', 'small_int8.encodings');
    assert.equal(JSON.parse(encodings.toString()).version, '1.0.0');
    assert.match((await written(visit, 'aimet-0.6.1', 'small_int8.0.6.1.encodings')).toString(), /"0\.6\.1"/);
    await tab.$eval('#save-ranges', (button) => button.scrollIntoView());
    await tab.screenshot({ path: /** @type {`${string}.png`} */ (join(out, 'ranges-download.png')) });

    // A file whose name says nothing is chosen; the result is the same, without any sample.
    await visit.press('Remove all');
    await visit.drop({ 'small.onnx': convolution() });
    await tab.waitForFunction(() => !document.querySelector('.result'));
    await visit.says('#run-why', /Add at least one sample/);
    const file = join(scratch, 'own.json');
    writeFileSync(file, own);
    await click(visit, '#sharing summary');
    await visit.choose('add-ranges', file);
    await visit.says('#ranges-note', /own\.json, ranges of Octet, gives the ranges of \d+ tensors/);
    await tab.select('#finetune', 'adaround');
    await visit.says('#run-why', /learn from samples, and ranges hold none\. Remove them and add samples/);
    await tab.select('#finetune', 'none');
    await visit.quantize();
    assert.ok((await visit.downloaded('small_int8.onnx')).equals(result));
    await visit.says('#result-facts', /ranges of another tool/);
    await click(visit, '#tab-download');
    await visit.says('#download-command', /^octet quantize small\.onnx --ranges own\.json$/);

    // Encodings say what they are by their name, and have settings of tensors.
    await visit.drop({ 'small_int8.encodings': encodings });
    await visit.says('#ranges-note', /encodings of AIMET, gives the ranges of \d+ tensors?, and settings of 1 tensor/);
    await tab.screenshot({ path: /** @type {`${string}.png`} */ (join(out, 'ranges-data.png')) });
    await click(visit, '#tab-overview');
    const before = await visit.shown();
    await visit.start();
    await visit.shows(before + 1);
    await visit.drop({ 'damaged.cache': Buffer.from('nothing\0of use') });
    await visit.says('.problem', /These ranges cannot be used.*damaged\.cache.*The ranges from before are kept/s);
    await visit.press('Remove ranges');
    await visit.says('#run-why', /Add at least one sample/);
  }));
});
