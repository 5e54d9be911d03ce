// Errors of models and samples on the page: what, where, why and what to do. After each of them a
// run succeeds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alreadyQuantized, convolution, npy, unknownOperator, withExternalData } from './model.mjs';
import { inBrowsers } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

const shape = [1, 3, 4, 4];
const values = Float32Array.from({ length: 48 }, (_, i) => ((i * 7) % 19) / 9 - 1);
const good = npy(values, shape);
const withNaN = npy(values.map((value, at) => (at === 17 ? NaN : value)), shape);

/** Removes the samples. @param {Visit} visit */
async function emptied(visit) {
  if (!await visit.tab.$('.names')) return;
  await visit.press('Remove all');
  await visit.tab.waitForFunction(() => !document.querySelector('.names'));
}

/** Opens a valid model and sample, whatever is on the page. @param {Visit} visit */
async function works(visit) {
  await visit.drop({ 'good.onnx': convolution() });
  await visit.says('.file', /good\.onnx/);
  await emptied(visit);
  await visit.says('#run-why', /at least one sample/);
  await visit.drop({ 'good.npy': good });
  await visit.says('#run-why', /Your file is not changed/);
  assert.equal(await visit.tab.$('.problem'), null);
  await visit.quantize();
}

/** @param {string} said @param {RegExp[]} words */
function holds(said, words) {
  for (const word of words) assert.match(said, word);
  assert.match(said, /\.$/, 'a whole sentence');
}

inBrowsers('what cannot be used', (visit) => {
  test('each of these is said, and a good run works after it', (t) => visit({}, async (visit) => {
    // One page for all errors: after each, the next model and sample are accepted.
    /** @param {string} what @param {() => Promise<void>} walk */
    const then = (what, walk) => t.test(what, async () => {
      await emptied(visit);
      await walk();
      await works(visit);
    });

    const whole = convolution();
    /** @type {[string, Uint8Array, RegExp[]][]} */
    const noModels = [
      ['empty.onnx', Buffer.from(''), [/empty/, /choose .* again/]],
      ['cut.onnx', whole.subarray(0, whole.length / 2), [/damaged|cut short/, /again/]],
      ['page.onnx', Buffer.from('<!doctype html><html><body>404</body></html>'), [/HTML/, /not an ONNX model/]],
      ['noise.onnx', Buffer.alloc(300, 0xff), [/again/]],
    ];
    for (const [file, bytes, words] of noModels) {
      await then(`no model: ${file}`, async () => {
        await visit.drop({ [file]: bytes });
        await visit.says('.problem h2', new RegExp(`^${file} could not be opened`));
        holds(await visit.text('.problem .message'), words);
      });
    }

    await then('a file of another kind', async () => {
      await visit.drop({ 'good.onnx': convolution(), 'notes.txt': Buffer.from('hi') });
      await visit.says('.problem', /notes\.txt/);
      holds(await visit.text('.problem .message'), [/not a sample/, /give .*\.npy/]);
    });

    await then('an operator nobody knows', async () => {
      await visit.drop({ 'odd.onnx': unknownOperator(), 'good.npy': good });
      await visit.says('.file', /odd\.onnx/);
      await visit.says('#run-why', /Your file is not changed/);
      await visit.start();
      await visit.says('.problem h2', /The run stopped/);
      holds(await visit.text('.problem .message'), [/Frobnicate/, /frob\b/, /export it with standard/]);
    });

    await then('a model that is quantized already', async () => {
      await visit.drop({ 'int8.onnx': alreadyQuantized(), 'good.npy': good });
      await visit.says('#run-why', /already quantized; open the float model/);
      holds(await visit.text('#panel-overview .callout'), [/quantized already/, /use the float model/]);
      await visit.tab.click('#run');
      assert.equal(await visit.tab.$('#progress-title'), null);
    });

    await then('external data that is missing is asked for by name, and taken from a drop', async () => {
      await visit.drop({ 'beside.onnx': withExternalData('weights.bin') });
      await visit.tab.waitForSelector('#choose-external');
      assert.match(await visit.text('.asks'), /weights\.bin/);
      assert.match(await visit.text('#run-why'), /weights\.bin/);
      await visit.drop({ 'weights.bin': Buffer.alloc(15) });
      await visit.says('.problem .message', /weights\.bin/);
      holds(await visit.text('.problem .message'), [/15|16/]);
      await visit.drop({ 'weights.bin': Buffer.alloc(16) });
      await visit.tab.waitForFunction(() => !document.querySelector('#choose-external'));
      assert.match(await visit.text('#run-why'), /at least one sample/);
    });

    /** @type {[string, Uint8Array, RegExp[]][]} */
    const badSamples = [
      ['a shape', npy(new Float32Array(60), [1, 3, 4, 5]), [/shape \[1, 3, 4, 5\]/, /"x" expects \[1, 3, 4, 4\]/]],
      ['a shape without its batch axis', npy(new Float32Array(48), [3, 4, 4]), [/shape \[3, 4, 4\]/, /batch axis/]],
      ['a type', npy(new BigInt64Array(48), shape), [/int64/, /"x" expects float32/]],
      ['a value that is not a number', withNaN, [/NaN .*at index \[0, 1, 0, 1\]/, /repair or leave out/]],
      ['no content', Buffer.from(''), [/empty|not a \.npy file/]],
      ['cut off content', good.subarray(0, 100), [/header states|ends inside/, /again/]],
    ];
    for (const [what, bytes, words] of badSamples) {
      await then(`a first sample with ${what} is refused before the run`, async () => {
        await visit.drop({ 'good.onnx': convolution(), 'bad.npy': bytes });
        await visit.says('.sample .callout.bad', /bad\.npy/);
        holds(await visit.text('.sample .callout.bad'), words);
        await visit.says('#run-why', /None of the samples can be used/);
        await visit.tab.click('#run');
        assert.equal(await visit.tab.$('#progress-title'), null);
      });
    }

    await then('a later sample that is bad is named before the run and left out of it, and is mended by adding it again', async () => {
      await visit.drop({ 'good.onnx': convolution(), 'a.npy': good, 'b.npy': withNaN, 'c.npy': good });
      await visit.says('#left', /3 samples/);
      await visit.says('#unusable', /b\.npy.*NaN .*at index \[0, 1, 0, 1\].*repair or leave out/s);
      await visit.says('#run-why', /Your file is not changed/);
      await visit.quantize();
      assert.match(await visit.text('#left-out'), /1 sample could not be run and was left out.*b\.npy.*NaN/s);
      assert.match(await visit.text('#result-facts'), /2 samples/);
      // The repaired file has the name and size of the bad one.
      await visit.drop({ 'b.npy': good });
      await visit.says('#left', /3 samples/);
      assert.equal(await visit.tab.$('#skipped'), null);
      await visit.quantize();
      assert.match(await visit.text('#result-facts'), /3 samples/);
    });

    await then('a run without samples is not begun', async () => {
      await visit.drop({ 'alone.onnx': convolution() });
      await visit.says('.file', /alone\.onnx/);
      await visit.says('#run-why', /at least one sample/);
      await visit.tab.click('#run');
      assert.equal(await visit.tab.$('#progress-title'), null);
    });
  }));
});
