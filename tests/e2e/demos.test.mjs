// Each demo: one click opens its model and samples, and a run succeeds.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { demo, inBrowsers, out } from './walk.mjs';

/** @type {{ demos: { id: string, name: string, samples: unknown[] }[] }} */
const { demos } = JSON.parse(readFileSync(join(demo, 'manifest.json'), 'utf8'));

test('there are three demos', () => assert.deepEqual(demos.map(({ id }) => id), ['photos', 'text', 'digits']));

inBrowsers('the demos', (visit, name) => {
  for (const { id, samples } of demos) {
    test(`${id} is quantized after one click`, () => visit({ demo }, async (visit) => {
      await visit.tab.waitForSelector(`#demo-${id}`);
      await visit.tab.click(`#demo-${id}`);
      await visit.says('#run-why', /Your file is not changed/);
      assert.match(await visit.text('#left'), new RegExp(`${samples.length} samples`));
      await visit.quantize();
      const model = await visit.downloaded('.onnx');
      assert.ok(model.length > 10_000, `${model.length} bytes`);
      writeFileSync(join(out, `demo-${id}-${name}.onnx`), model);
      if (id !== 'text') return;
      await visit.judged();
      await visit.tab.waitForSelector('#read:not([disabled])');
      await visit.tab.click('#read');
      await visit.says('.ocr', /of 16 lines are read the same|All 16 lines are read the same/);
      const read = await visit.tab.$$eval('.ocr tbody tr', (rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? '').slice(1, 3)));
      // The first line is the written text (tests/oracle/corpus_samples.py), and no line is empty.
      assert.deepEqual(read.map(([float]) => /^[a-zA-Z ,.'-]{4,}$/.test(float)), read.map(() => true), JSON.stringify(read));
      assert.ok(read.filter(([float, quantized]) => float === quantized).length >= 8, JSON.stringify(read));
    }));
  }
});
