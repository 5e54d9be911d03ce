// Three real models with dynamic sizes: opened, calibrated, compared, timed and downloaded. The
// corpus downloads or builds them.

import assert from 'node:assert/strict';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { corpus, inBrowsers, out, photos } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

const tokens = join(corpus, 'samples', 'minilm_l6');

/**
 * @typedef {object} Journey
 * @property {string} what
 * @property {string} model
 * @property {string[]} samples
 * @property {(visit: Visit) => Promise<void>} [choose] what the person says before the run
 * @property {RegExp} told what the headline says of the accuracy
 */

/** @type {Journey[]} */
const journeys = [
  {
    what: 'a detector of dynamic batch, height and width, with photos',
    model: join(corpus, 'architectures', 'yolo8n_dynamic.onnx'),
    samples: photos.slice(0, 3),
    choose: async (visit) => {
      const side = (/** @type {string} */ id) => visit.tab.$eval(id, (field) => /** @type {HTMLInputElement} */ (field).value);
      assert.deepEqual([await side('#image-height'), await side('#image-width'), await side('#resize')], ['640', '640', 'letterbox']);
      for (const id of ['#image-height', '#image-width']) {
        await visit.tab.$eval(id, (field) => {
          /** @type {HTMLInputElement} */ (field).value = '320';
          field.dispatchEvent(new Event('change', { bubbles: true }));
        });
      }
      await visit.says('.sample table', /1×3×320×320/);
    },
    told: /boxes.*on 3 samples/is,
  },
  {
    what: 'a vision transformer of dynamic batch, with photos',
    model: join(corpus, 'models', 'vit_focus.onnx'),
    samples: photos.slice(0, 2),
    told: /dB.*on 2 samples/is,
  },
  {
    what: 'a sentence encoder whose first output passes its ids on',
    model: join(corpus, 'models', 'minilm_l6.onnx'),
    samples: readdirSync(tokens).filter((name) => name.endsWith('.npz')).sort().slice(0, 3).map((name) => join(tokens, name)),
    told: /cosine.*sentence_embedding.*on 3 samples/is,
  },
];

inBrowsers('a journey', (visit, name) => {
  for (const { what, model, samples, choose, told } of journeys) {
    test(what, () => visit({}, async (visit) => {
      const { tab } = visit;
      await visit.choose('choose-model', model);
      await tab.waitForSelector('#card-title');
      await visit.choose('choose-samples', ...samples);
      await visit.says('#run-why', /Your file is not changed/);
      await choose?.(visit);
      await visit.quantize();
      await visit.measureBoth();
      await visit.says('.headlines', told);
      await visit.says('[aria-labelledby=latency-title]', /10 runs each/);
      // Every layer was compared without a failure.
      assert.equal(await tab.$('#no-layers'), null);
      assert.equal(await tab.$('.problem'), null);
      assert.ok((await tab.$$('[aria-labelledby=accuracy-title] button[aria-label^="Keep "]')).length >= 5);
      await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `journey-${samples.length}-${name}`)}.png`) });
      const file = await visit.downloaded('.onnx');
      assert.ok(file.length < 0.6 * statSync(model).size, `${file.length} bytes`);
      // The smallest one is left for ONNX Runtime to check.
      if (choose) writeFileSync(join(out, `yolo8n_dynamic-${name}.onnx`), file);
    }));
  }
});
