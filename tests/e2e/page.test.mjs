// The page in stock browsers, as a person walks it.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inBrowsers, model as modelFile, out } from './walk.mjs';

inBrowsers('the page', (visit, name) => {
  for (const plain of [false, true]) {
    test(`a model and photos become an int8 model and a report, ${plain ? 'plain' : 'isolated'}`, async () => {
      await visit({ plain }, async (visit) => {
        const engine = await visit.tab.$$eval('summary', (all) => all[1].textContent ?? '');
        assert.match(engine, plain ? /1 thread$/ : /build/);
        assert.equal(await visit.tab.$('#run'), null);
        await visit.ready(4);
        await visit.quantize();
        const model = await visit.downloaded('.onnx');
        const report = (await visit.downloaded('.yaml')).toString();
        assert.ok(model.length > 1_000_000 && model.length < 8_000_000, `${model.length} bytes`);
        assert.match(report, /Calibration Start/);
        assert.match(report, /total_quantization_time_seconds/);
        assert.ok(report.includes(createHash('sha256').update(readFileSync(modelFile)).digest('hex')), 'the checksum of the model');
        const stem = `efficientnet_lite0-${name}-${plain ? 'plain' : 'isolated'}`;
        writeFileSync(join(out, `${stem}.onnx`), model);
        writeFileSync(join(out, `${stem}.yaml`), report);
      });
    });
  }

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
      await visit.finished();
      await visit.tab.waitForFunction(() => document.activeElement?.id === 'done-title');
      await visit.tab.keyboard.press('Tab');
      assert.match(await visit.tab.evaluate(() => document.activeElement?.textContent ?? ''), /Download model/);
    });
  });
});
