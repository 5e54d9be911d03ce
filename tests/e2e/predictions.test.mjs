// Predictions of both models side by side, by the kind of the model.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { boxesInGrids, boxesInLevels, boxesWithMasks, selectedBoxes } from './detectors.mjs';
import { boxesAndLogits, convolution, dense, png, sound, textEncoder, wav } from './model.mjs';
import { corpus, inBrowsers, model, out, photos } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** Takes pictures of the predictions in light, in dark and on a small screen. @param {Visit} visit @param {string} name */
export async function pictured(visit, name) {
  const { tab } = visit;
  for (const [scheme, width] of /** @type {const} */ ([['light', 1280], ['dark', 1280], ['light', 390]])) {
    await tab.setViewport({ width, height: 1000 });
    await tab.evaluate((theme) => (document.documentElement.dataset.theme = theme), scheme);
    await tab.$eval('#predictions', (part) => part.scrollIntoView());
    await tab.evaluate(() => document.getAnimations().forEach((one) => one.finish()));
    await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `predictions-${name}-${scheme}-${width}`)}.png`) });
    assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is wider than ${width} pixels`);
  }
  await tab.setViewport({ width: 1280, height: 900 });
}

const words = ['[PAD]', '[UNK]', 'the', 'cat', 'sat', 'on', 'a', 'mat', 'dog', 'ran'];
const tokenizer = Buffer.from(JSON.stringify({
  version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
  pre_tokenizer: { type: 'Whitespace' }, post_processor: null, decoder: null,
  model: { type: 'WordLevel', vocab: Object.fromEntries(words.map((word, id) => [word, id])), unk_token: '[UNK]' },
}));
/** A picture of one colour and a stripe. @param {number} seed */
const stripe = (seed) => png(96, 64, (x, y, channel) => (x > 20 * seed && x < 20 * seed + 30 ? 40 + 60 * channel : (seed * 37 + channel * 50 + y) % 256));

/**
 * A model and its data, dropped together or apart. `shows`: what stands in the predictions.
 *
 * @typedef {object} Kind
 * @property {string} what
 * @property {Record<string, Buffer>} data
 * @property {Record<string, Buffer>} model
 * @property {RegExp} said
 * @property {RegExp} shows
 * @property {number} canvases the number of pictures and waveforms
 */

/** @type {Kind[]} */
const kinds = [
  {
    what: 'a detector with boxes and logits', model: { 'detr.onnx': boxesAndLogits() }, data: { 'a.png': stripe(0), 'b.png': stripe(1), 'c.png': stripe(2) },
    said: /2 boxes are found by both/, shows: /Float2 boxes.*(cat|dog) \d+\.\d %.*Quantized2 boxes/, canvases: 2,
  },
  {
    what: 'a detector-with-masks', model: { 'seg.onnx': boxesWithMasks() }, data: { 'a.png': stripe(0), 'b.png': stripe(1), 'c.png': stripe(2) },
    said: /2 boxes are found by both/, shows: /Float2 boxes.*(dog|cat) \d+\.\d %.*Quantized2 boxes/, canvases: 2,
  },
  {
    what: 'a detector-with-grids', model: { 'yolox.onnx': boxesInGrids() }, data: { 'a.png': stripe(0), 'b.png': stripe(1), 'c.png': stripe(2) },
    said: /2 boxes are found by both/, shows: /Float2 boxes.*(cat|dog) \d+\.\d %.*Quantized2 boxes/, canvases: 2,
  },
  {
    what: 'a detector-with-levels', model: { 'picodet.onnx': boxesInLevels() }, data: { 'a.png': stripe(0), 'b.png': stripe(1), 'c.png': stripe(2) },
    said: /2 boxes are found by both/, shows: /Float2 boxes.*(cat|dog) \d+\.\d %.*Quantized2 boxes/, canvases: 2,
  },
  {
    what: 'a detector-with-selection', model: { 'yolov7.onnx': selectedBoxes() }, data: { 'a.png': stripe(0), 'b.png': stripe(1), 'c.png': stripe(2) },
    said: /box(es)? (is|are) found by both/, shows: /Float2 boxes.*(cat|dog) \d+\.\d %.*Quantized2 boxes/, canvases: 2,
  },
  {
    what: 'a segmenter', model: { 'segmenter.onnx': convolution({ x: [1, 3, 32, 32], y: [1, 2, 32, 32] }) }, data: { 'a.png': stripe(0), 'b.png': stripe(1), 'c.png': stripe(2) },
    said: /\d+(\.\d)? % of the pixels have the same class/, shows: /Where they differ.*class 0.*%/, canvases: 3,
  },
  {
    what: 'a text encoder', model: { 'encoder.onnx': textEncoder(words.length) }, data: { 'a.txt': Buffer.from('the cat sat\n\non a mat\n\nthe dog ran\n\na dog sat on a mat\n'), 'tokenizer.json': tokenizer },
    said: /The cosine of both vectors is (0\.9\d+|1\.0000)/, shows: /“.+”.*Float: nearest samples.*(the cat sat|on a mat|the dog ran).*(same place|place \d quantized).*Quantized: nearest samples/, canvases: 0,
  },
  {
    what: 'a model of sound', model: { 'hear.onnx': sound() }, data: { 'a.wav': wav(16000, 16384), 'b.wav': wav(8000, 12000) },
    said: /Both are equal|The difference is at most/, shows: /Input.*Play.*1\.\d s.*Output.*Float.*Quantized/, canvases: 1,
  },
  {
    what: 'a table', model: { 'table.onnx': dense({ layers: 2, side: 4 }).model }, data: { 'pets.csv': Buffer.from('width,height,weight,age\n0.5,2,3,4\n-1,3,5,6\n0,1,2,1\n') },
    said: /Both|Float says|The difference/, shows: /Float.*Quantized.*ColumnValuewidth.*4 values of the row/, canvases: 0,
  },
];

inBrowsers('predictions', (visit, name) => {
  for (const { what, model, data, said, shows, canvases } of kinds) {
    test(`of ${what}, with its data dropped before it, after one click`, () => visit({}, async (visit) => {
      const { tab } = visit;
      await visit.drop(data);
      await visit.says('#waiting', /kept/);
      await visit.drop(model);
      await visit.says('[aria-labelledby=data-title] .file', /\d samples/);
      await visit.says('#run-why', /Your file is not changed/);
      // Measured by the page, whatever the test calls.
      await tab.evaluate(() => {
        /** @type {any} */ (window).clicks = 0;
        addEventListener('click', (event) => (/** @type {any} */ (window).clicks += Number(event.isTrusted)), true);
      });
      await tab.waitForSelector('#run:not([disabled])');
      await visit.quantize();
      await tab.waitForSelector('#verdict');
      assert.ok(await tab.evaluate(() => /** @type {any} */ (window).clicks) <= 3);
      await visit.says('#predictions-count', /answers differ|are the same/);
      await visit.says('#prediction-difference', said);
      await visit.says('#prediction', shows);
      await tab.waitForFunction((count) => document.querySelectorAll('#prediction canvas').length === count, {}, canvases);
      await pictured(visit, `${what.split(' ')[1]}-${name}`);
      assert.ok((await visit.downloaded('.onnx')).length > 0);
      await tab.$eval('#more-files', (details) => details.setAttribute('open', ''));
      await visit.press('HTML report');
      const stem = Object.keys(model)[0]?.replace('.onnx', '_int8');
      const report = (await visit.saved(`${stem}.report.html`)).toString();
      assert.match(report, /<h2>Predictions of both models<\/h2>/);
      assert.equal(report.includes('src="data:image/'), canvases > 0);
    }));
  }

  test('pictures in other formats are decoded by the browser, the first one of a moving picture', () => visit({}, async (visit) => {
    const bitmap = Buffer.alloc(54 + 4 * 8 * 8, 128);
    bitmap.write('BM');
    [bitmap.length, 0, 54, 40, 8, 8].forEach((value, at) => bitmap.writeUInt32LE(value, 2 + 4 * at));
    [1, 32].forEach((value, at) => bitmap.writeUInt16LE(value, 26 + 2 * at));
    bitmap.fill(0, 30, 54);
    const moving = Buffer.from('R0lGODlhAQABAIAAAP8AAAAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64');
    await visit.drop({ 'segmenter.onnx': convolution({ x: [1, 3, 32, 32], y: [1, 2, 32, 32] }) });
    await visit.tab.waitForSelector('#card-title');
    await visit.drop({ 'a.bmp': bitmap, 'b.gif': moving });
    await visit.says('[aria-labelledby=data-title] .file', /2 samples/);
    await visit.tab.waitForSelector('.pictures canvas');
    await visit.drop({ 'c.webp': Buffer.from('RIFF') });
    await visit.says('.problem .message', /c\.webp: this browser can.t decode the picture; save it as PNG or JPEG/);
  }));

  test('the mask of a box colours its pixels and no others', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'detr.onnx': boxesAndLogits(), 'a.png': png(64, 64, () => 0) });
    await visit.says('[aria-labelledby=data-title] .file', /1 sample/);
    await visit.says('#run-why', /Your file is not changed/);
    await tab.evaluate(async () => {
      const { view } = await import(/** @type {string} */ ('./www/features/predictions/view.js'));
      const { styled } = await import(/** @type {string} */ ('./www/library/style-sheet.js'));
      await styled(new URL('./www/features/predictions/style.css', location.href));
      // The lower left half of a box in the middle.
      const pixels = Uint8Array.from({ length: 64 }, (_, at) => Number(at % 8 <= Math.floor(at / 8)));
      const box = { left: 0.25, top: 0.25, right: 0.75, bottom: 0.75, score: 0.5, number: 1, paired: true, mask: { x: 4, y: 4, columns: 8, rows: 8, pixels, height: 16, width: 16 } };
      const answer = { type: 'boxes', height: 64, width: 64, float: [box], quantized: [{ ...box, mask: undefined }], differs: false, apart: 0 };
      document.body.replaceChildren(...view([{ sample: 'a.png', answer }]));
    });
    await tab.waitForFunction(() => document.querySelectorAll('#prediction canvas').length === 2);
    const bright = await tab.$$eval('#prediction canvas', (all) => all.map((canvas) => {
      const { width, height } = /** @type {HTMLCanvasElement} */ (canvas);
      const at = (/** @type {number} */ x, /** @type {number} */ y) => /** @type {HTMLCanvasElement} */ (canvas).getContext('2d')?.getImageData(x * width, y * height, 1, 1).data.slice(0, 3).some((value) => value > 60);
      return [at(0.35, 0.68), at(0.68, 0.35), at(0.1, 0.9)];
    }));
    assert.deepEqual(bright, [[true, false, false], [false, false, false]]);
    await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `masks-${name}`)}.png`) });
  }));

  test('those that differ come first, are named, and a filter leaves only them', () => visit({}, async (visit) => {
    const { tab } = visit;
    await tab.evaluate(async () => {
      const { view } = await import(/** @type {string} */ ('./www/features/predictions/view.js'));
      const box = (/** @type {number} */ number, paired = true) => ({ left: 0.1, top: 0.1, right: 0.5, bottom: 0.5, score: 0.5, number, paired });
      const answer = (/** @type {object[]} */ float, /** @type {object[]} */ quantized, /** @type {number} */ apart) => ({ type: 'boxes', height: 8, width: 8, float, quantized, differs: apart > 0, apart });
      const answers = [['same', answer([box(1)], [box(1)], 0)], ['other', answer([box(1, false)], [box(2, false)], 1)], ['lost', answer([box(1), box(3, false)], [box(1)], 0.5)]];
      document.body.replaceChildren(...view(answers.map(([sample, one]) => ({ sample, answer: one }))));
    });
    assert.match(await visit.text('#predictions-count'), /^2 of 3 answers differ\. /);
    await visit.says('#prediction-place', /^1 of 3: other$/);
    await visit.says('#prediction-difference', /^Differs\. 0 boxes are found by both\. Only float: class 1 50\.0 %\. Only quantized: class 2 50\.0 %\.$/);
    await visit.says('#prediction', /class 1 50\.0 %, only float/);
    await tab.select('#prediction-filter', 'differing');
    await tab.click('#prediction-next');
    await visit.says('#prediction-place', /^2 of 2: lost$/);
    assert.ok(await tab.$('#prediction-next[disabled]'));
    await tab.select('#prediction-filter', 'all');
    await visit.says('#prediction-place', /^1 of 3: other$/);
  }));

  test('of a classifier: both lists of classes, in words, turned by keys', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.choose('choose-model', model);
    await tab.waitForSelector('#card-title');
    await visit.choose('choose-samples', ...photos.slice(0, 4), join(corpus, 'photos', 'labels.csv'));
    await visit.says('#trial', /agree|Chosen/);
    await visit.says('#run-why', /Your file is not changed/);
    await visit.quantize();
    await visit.says('#predictions-count', /(\d+ of 4 answers differ|All 4 answers are the same)\. .*most likely class/);
    await visit.says('#prediction-difference', /(Both say|Float says) class \d+.*%/);
    await tab.waitForFunction(() => document.querySelectorAll('#prediction .bars li').length === 10);
    await visit.says('#prediction-place', /^1 of 4: imagenet_/);
    await visit.says('#prediction', /Float: (right|wrong) by the label.*Quantized: (right|wrong) by the label.*By its label it is class \d+/);
    assert.ok(await tab.$eval('#prediction .share-part', (part) => part.getBoundingClientRect().width > 1 && getComputedStyle(part).backgroundColor !== 'rgba(0, 0, 0, 0)'));
    const shares = await tab.$$eval('#prediction figure:nth-of-type(2) .figure', (all) => all.map((one) => Number.parseFloat(one.textContent ?? '')));
    assert.ok(shares.every((share, at) => at === 0 || share <= (shares[at - 1] ?? 0)) && shares.reduce((sum, share) => sum + share, 0) <= 100.5, String(shares));
    await pictured(visit, `classifier-${name}`);
    await tab.focus('.predictions');
    await tab.keyboard.press('ArrowRight');
    await visit.says('#prediction-place', /^2 of 4: /);
    await tab.keyboard.press('End');
    await visit.says('#prediction-place', /^4 of 4: /);
    assert.equal(await tab.$eval('#prediction-next', (button) => /** @type {HTMLButtonElement} */ (button).disabled), true);
    await tab.click('#prediction-before');
    await visit.says('#prediction-place', /^3 of 4: /);
  }));
});
