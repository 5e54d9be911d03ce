// The page in stock browsers, used like a person would.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inBrowsers, model, out, photos } from './walk.mjs';

inBrowsers('the page', (visit, name) => {
  const several = availableParallelism() > 1;
  const kinds = {
    isolated: { build: 'threads', engine: several ? /^Full build, \d+ threads$/ : /^Full build, 1 thread$/ },
    plain: { build: 'threads', engine: /^Full build, 1 thread$/ },
    older: { build: 'baseline', engine: /^Baseline build, 1 thread$/ },
  };
  for (const [kind, { build, engine }] of Object.entries(kinds)) {
    test(`a model and photos become an int8 model and a report, ${kind}`, async () => {
      await visit({ plain: kind === 'plain', older: kind === 'older' }, async (visit) => {
        const said = await visit.tab.$$eval('summary', (all) => all[1].textContent ?? '');
        const why = await visit.tab.$eval('.abilities li:last-child', (item) => item.textContent ?? '');
        // Firefox does not start a worker in one of twenty automated pages (www/engine.js).
        assert.match(said, name === 'firefox' && /did not start/.test(why) ? kinds.plain.engine : engine);
        assert.equal(await visit.tab.evaluate(() => crossOriginIsolated), kind !== 'plain');
        const loaded = visit.requests.filter((url) => url.endsWith('.wasm')).map((url) => new URL(url).pathname);
        assert.deepEqual([...new Set(loaded)], [`/pkg/${build}/octet_bg.wasm`]);
        assert.equal(await visit.tab.$('#run'), null);
        await visit.ready(4);
        await visit.quantize();
        const result = await visit.downloaded('.onnx');
        const report = (await visit.downloaded('.yaml')).toString();
        assert.ok(result.length > 1_000_000 && result.length < 8_000_000, `${result.length} bytes`);
        assert.match(report, /Calibration Start/);
        assert.match(report, /total_quantization_time_seconds/);
        assert.ok(report.includes(createHash('sha256').update(readFileSync(model)).digest('hex')), 'the checksum of the model');
        const stem = `efficientnet_lite0-${name}-${kind}`;
        writeFileSync(join(out, `${stem}.onnx`), result);
        writeFileSync(join(out, `${stem}.yaml`), report);
      });
    });
  }

  test('the keyboard alone is enough, from the choice of the model to the downloaded file', async () => {
    await visit({}, async (visit) => {
      const { tab } = visit;
      tab.setDefaultTimeout(240_000);
      const here = () => tab.evaluate(() => document.activeElement?.id || document.activeElement?.className || document.activeElement?.textContent || '');
      /** Presses Tab repeatedly, up to a limit. @param {(at: string) => boolean} there */
      const reach = async (there) => {
        for (let steps = 0; steps < 80; steps += 1) {
          if (there(await here())) return;
          await tab.keyboard.press('Tab');
        }
        assert.fail(`not reached; the focus is on ${await here()}`);
      };
      /** Presses Enter on a button that asks for files. @param {string[]} files */
      const answer = async (...files) => {
        const asked = tab.waitForFileChooser();
        // The wait for the dialog must begin before it opens.
        await new Promise((next) => setTimeout(next, 300));
        await tab.keyboard.press('Enter');
        const chooser = await asked;
        await chooser.accept(files);
      };
      await tab.keyboard.press('Tab');
      assert.equal(await here(), 'skip');
      await tab.keyboard.press('Enter');
      await reach((at) => at === 'choose-model');
      await answer(model);
      await tab.waitForSelector('#card-title');
      await reach((at) => at === 'choose-samples');
      await answer(...photos.slice(0, 2));
      await visit.says('#run-why', /Your file is not changed/);
      await reach((at) => at === 'run');
      await tab.keyboard.press('Enter');
      await visit.finished();
      await tab.waitForFunction(() => document.activeElement?.id === 'done-title');
      await visit.judged();
      await tab.waitForSelector('#measure-both:not([disabled])');
      assert.equal(await here(), 'done-title');
      await tab.keyboard.press('Tab');
      assert.equal(await tab.evaluate(() => document.activeElement?.textContent ?? ''), 'Measure the time');
      await tab.keyboard.press('Tab');
      assert.match(await tab.evaluate(() => document.activeElement?.textContent ?? ''), /^Download model/);
      await tab.keyboard.press('Enter');
      assert.ok((await visit.saved('efficientnet_lite0_int8.onnx')).length > 1_000_000);
    });
  });
});
