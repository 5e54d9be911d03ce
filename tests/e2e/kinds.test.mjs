// The task that a model is taken for, and samples of sound and of tables.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { dense, detector, languageModel, levels, sound, wav } from './model.mjs';
import { inBrowsers, out } from './walk.mjs';

const table = 'id,width,height,weight,age,label\n1,0.5,2,3,4,cat\n2,-1,3,5,6,dog\n3,0,1,2,oops,cat\n';

inBrowsers('kinds of models', (visit, name) => {
  test('the page says what it takes a model for, why, and which samples fit', () => visit({}, async (visit) => {
    const models = /** @type {[string, Buffer, RegExp, RegExp, RegExp][]} */ ([
      ['levels.onnx', levels(), /image classifier: the input "x" has the shape of an image, and the output "y" scores classes \(likely\)/, /^Image classifier, /, /Pictures/],
      ['best.onnx', detector({ task: 'detect' }), /detector: the file’s metadata state the task "detect" \(sure\)|detector: the file's metadata state the task "detect" \(sure\)/, /^Detector, /, /Photos/],
      ['words.onnx', languageModel(200), /language model: .*caches/, /^Language model, /, /tokenizer\.json/],
      ['table.onnx', dense({ layers: 2, side: 4 }).model, /model of tables: the input "x" is a row of numbers \(a guess\)/, /^Model of tables, /, /\.csv/],
      ['hear.onnx', sound(), /model of sound: the input "x" is a waveform/, /^Model of sound, /, /16000 values a second/],
    ]);
    for (const [file, bytes, said, short, samples] of models) {
      await visit.drop({ [file]: bytes });
      await visit.says('.file', new RegExp(file));
      await visit.says('#task', said);
      assert.match(await visit.text('[aria-labelledby=model-title] .note'), short);
      assert.match(await visit.text('#fitting-samples'), samples);
    }
    await visit.tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `kinds-${name}`)}.png`) });
  }));

  test('rows of a table are samples: features are chosen, and a row that is no numbers is named', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'table.onnx': dense({ layers: 2, side: 4 }).model, 'pets.csv': Buffer.from(table) });
    await visit.says('.sample table', /x.*float32.*1×4.*-?0?\.?5?/s);
    await visit.says('#unusable', /pets\.csv:4: .*column "age" holds "oops", which is no number/);
    assert.equal(await tab.$eval('#text-settings', (part) => part.hasAttribute('hidden')), true);
    await visit.says('#run-why', /Your file is not changed/);
    await visit.quantize();
    assert.match(await visit.text('#result-facts'), /2 samples/);
    // Another model takes the table anew.
    await visit.drop({ 'narrow.onnx': dense({ layers: 2, side: 3 }).model });
    await visit.says('.problem', /takes 3 columns, and the table has 4 of numbers: width, height, weight, age/);
  }));

  test('a recording gets the rate and the length of the model, and the rate can be changed', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'hear.onnx': sound(), 'a.wav': wav(8000, 12000), 'b.wav': wav(44100, 50000) });
    await visit.says('.sample table', /x.*float32.*1×1×16384/s);
    assert.equal(await tab.$eval('#sample-rate', (field) => /** @type {HTMLInputElement} */ (field).value), '16000');
    assert.match(await visit.text('#sample-rate-why'), /most models of speech take it \(a guess: check it\).*cut or padded to 16384/);
    assert.ok(await tab.$('.pictures canvas.waveform'));
    const padded = await visit.text('.sample tbody');
    await tab.$eval('#sample-rate', (field) => {
      /** @type {HTMLInputElement} */ (field).value = '8000';
      field.dispatchEvent(new Event('change', { bubbles: true }));
    });
    await tab.waitForFunction((before) => document.querySelector('.sample tbody')?.textContent !== before, {}, padded);
    assert.match(await visit.text('#command-line'), /--sample-rate 8000/);
    await visit.says('#run-why', /Your file is not changed/);
    for (const width of [1280, 390]) {
      await tab.setViewport({ width, height: 1000 });
      await tab.$eval('.sample', (part) => part.scrollIntoView());
      await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `sound-${name}-${width}`)}.png`) });
    }
    await tab.setViewport({ width: 1280, height: 900 });
    await visit.quantize();
    await visit.judged();
    assert.match(await visit.text('#result-facts'), /2 samples/);
    assert.match((await visit.downloaded('.yaml')).toString(), /rate: 8000/);
  }));
});
