// The page in stock browsers, as a person walks it.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { withExternalData } from './model.mjs';
import { browsers, launch, out, photos, Visit } from './walk.mjs';

for (const name of browsers) {
  describe(`the page in ${name}`, () => {
    /** @type {import('puppeteer-core').Browser} */
    let browser;
    before(async () => {
      browser = await launch(name);
    });
    after(() => browser?.close());

    /** @param {{ plain?: boolean }} options @param {(visit: Visit) => Promise<void>} walk */
    const visit = async (options, walk) => {
      const visit = await Visit.begin(browser, options);
      try {
        await walk(visit);
        assert.deepEqual(visit.errors, []);
        const elsewhere = visit.requests.filter((url) => !url.startsWith(visit.server?.url ?? '') && !url.startsWith('blob:') && !url.startsWith('data:'));
        assert.deepEqual(elsewhere, [], 'a request left for another origin');
      } finally {
        await visit.end();
      }
    };

    for (const plain of [false, true]) {
      test(`a model and photos become an int8 model and a report, ${plain ? 'plain' : 'isolated'}`, async () => {
        await visit({ plain }, async (visit) => {
          const engine = await visit.tab.$$eval('summary', (all) => all[1].textContent ?? '');
          assert.match(engine, plain ? /1 thread$/ : /build/);
          assert.equal(await visit.tab.$('#run'), null);
          await visit.ready(4);
          await visit.tab.click('#run');
          await visit.tab.waitForSelector('#done-title');
          const model = await visit.downloaded('.onnx');
          const report = (await visit.downloaded('.yaml')).toString();
          assert.ok(model.length > 1_000_000 && model.length < 8_000_000, `${model.length} bytes`);
          assert.match(report, /Calibration Start/);
          assert.match(report, /total_quantization_time_seconds/);
          const stem = `efficientnet_lite0-${name}-${plain ? 'plain' : 'isolated'}`;
          writeFileSync(join(out, `${stem}.onnx`), model);
          writeFileSync(join(out, `${stem}.yaml`), report);
        });
      });

      test(`a run is cancelled at once and run again, ${plain ? 'plain' : 'isolated'}`, async () => {
        await visit({ plain }, async (visit) => {
          await visit.ready(16);
          await visit.tab.click('#run');
          await visit.tab.waitForSelector('#cancel');
          await visit.tab.waitForFunction(() => document.querySelector('#progress-title')?.textContent === 'Calibrating');
          const took = await visit.tab.evaluate(async () => {
            const began = performance.now();
            /** @type {HTMLElement} */ (document.querySelector('#cancel')).click();
            while (document.querySelector('#cancel')) await new Promise((next) => setTimeout(next, 5));
            return performance.now() - began;
          });
          // The promise is 200 ms; a busy machine gets the time a scheduler may take on top.
          assert.ok(took < 1000, `${took} ms`);
          assert.match(await visit.text('.file'), /efficientnet/);
          await visit.tab.click('#run');
          await visit.tab.waitForSelector('#done-title');
        });
      });
    }

    test('what is no model is refused in words, and the page stays usable', async () => {
      await visit({}, async (visit) => {
        const html = [...Buffer.from('<!doctype html><html><body>404</body></html>')];
        /** @type {[string, number[]][]} */
        const bad = [['empty.onnx', []], ['page.onnx', html], ['cut.onnx', [8, 8, 0x3a, 0xff, 0xff, 0x7f, 1, 2]]];
        for (const [file, bytes] of bad) {
          await visit.drop([{ name: file, bytes }]);
          await visit.tab.waitForFunction((wanted) => document.querySelector('.problem h2')?.textContent?.startsWith(wanted), {}, file);
          assert.ok((await visit.text('.problem .said')).length > 20);
          await visit.tab.click('#close-problem');
        }
        await visit.ready(2);
        await visit.drop([{ name: 'notes.txt', bytes: [104, 105] }]);
        await visit.tab.waitForSelector('.problem');
        assert.match(await visit.text('.problem .said'), /notes\.txt/);
        await visit.tab.click('#close-problem');
        await visit.drop([{ name: 'broken.npy', bytes: [1, 2, 3] }]);
        await visit.tab.waitForSelector('.callout.bad');
        assert.match(await visit.text('#run-why'), /first sample/i);
        await visit.tab.evaluate(() => [...document.querySelectorAll('button')].find((b) => b.textContent === 'Remove all')?.click());
        assert.match(await visit.text('#run-why'), /at least one sample/);
        await visit.choose('choose-samples', photos[0]);
        await visit.tab.waitForSelector('.pictures canvas');
        await visit.tab.click('#run');
        await visit.tab.waitForSelector('#done-title');
      });
    });

    test('external data is asked for by name, and taken from a drop', async () => {
      await visit({}, async (visit) => {
        await visit.drop([{ name: 'beside.onnx', bytes: [...withExternalData('weights.bin')] }]);
        await visit.tab.waitForSelector('#choose-external');
        assert.match(await visit.text('.asks'), /weights\.bin/);
        assert.match(await visit.text('#run-why'), /weights\.bin/);
        await visit.drop([{ name: 'weights.bin', bytes: new Array(16).fill(0) }]);
        await visit.tab.waitForFunction(() => !document.querySelector('#choose-external'));
        assert.match(await visit.text('#run-why'), /at least one sample/);
      });
    });

    test('the keyboard alone is enough', async () => {
      await visit({}, async (visit) => {
        await visit.tab.keyboard.press('Tab');
        assert.equal(await visit.tab.evaluate(() => document.activeElement?.className), 'skip');
        await visit.ready(2);
        for (let steps = 0; steps < 60; steps += 1) {
          await visit.tab.keyboard.press('Tab');
          if (await visit.tab.evaluate(() => document.activeElement?.id === 'run')) break;
        }
        assert.equal(await visit.tab.evaluate(() => document.activeElement?.id), 'run');
        await visit.tab.keyboard.press('Enter');
        await visit.tab.waitForSelector('#done-title');
        await visit.tab.waitForFunction(() => document.activeElement?.id === 'done-title');
        await visit.tab.keyboard.press('Tab');
        assert.match(await visit.tab.evaluate(() => document.activeElement?.textContent ?? ''), /Download model/);
      });
    });
  });
}
