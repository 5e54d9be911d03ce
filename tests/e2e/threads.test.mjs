// Threads: used if they start, replaced by one thread otherwise; the page shows which.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { anySize, npy } from './model.mjs';
import { inBrowsers, scratch, silentThreads } from './walk.mjs';

const silent = silentThreads();

inBrowsers('threads', (visit, name) => {
  test('where they do not start the page does without, and says so', () => visit({ mounts: { '/pkg/': silent } }, async (visit) => {
    const said = () => visit.tab.$$eval('summary', (all) => all[1].textContent ?? '');
    assert.match(await said(), /1 thread$/);
    const why = await visit.tab.$eval('.abilities li:last-child', (item) => item.textContent ?? '');
    assert.match(why, /1 thread.*did not start.*10 s.*one core/);
    await visit.ready(2);
    assert.equal(await visit.tab.$eval('#threads', (input) => /** @type {HTMLInputElement} */ (input).value), '1');
    assert.match(await visit.text('#threads-why'), /did not start/);
    await visit.quantize();
    assert.ok((await visit.downloaded('.onnx')).length > 1_000_000);
  }));

  test('every sample is counted when it is done, not only every portion', () => visit({}, async (visit) => {
    // The first sample takes a second, the second none; with two threads they are one batch.
    const side = 3072;
    const [slow, quick] = [join(scratch, 'a-slow.npy'), join(scratch, 'b-quick.npy')];
    writeFileSync(slow, npy(new Float32Array(3 * side * side).fill(0.5), [1, 3, side, side]));
    writeFileSync(quick, npy(new Float32Array(48), [1, 3, 4, 4]));
    await visit.drop({ 'any.onnx': anySize() });
    await visit.tab.waitForSelector('#card-title');
    await visit.choose('choose-samples', slow, quick);
    await visit.says('#run-why', /Your file is not changed/);
    await visit.tab.evaluate(() => {
      /** @type {any} */ (window).counts = new Set();
      const note = () => /** @type {any} */ (window).counts.add(document.querySelector('.live dd')?.textContent);
      new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
    });
    await visit.quantize();
    const counts = await visit.tab.evaluate(() => [.../** @type {any} */ (window).counts].filter(Boolean));
    assert.ok(counts.includes('1 of 2'), counts.join('; '));
  }));

  // Only Chromium gives a test access to the worker.
  if (name === 'chromium') {
    test('an engine that stops is started again, on one thread when asked; nothing is lost', () => visit({}, async (visit) => {
      const { tab } = visit;
      await visit.ready(48);
      await visit.start();
      await visit.says('#progress-title', /Calibrating/);
      // Ranges are shown as they arrive.
      await visit.says('.ranges + figcaption', /Ranges of \d+ tensors so far; the widest is .+ to /);
      const worker = tab.workers().find((one) => /worker\.js/.test(one.url()));
      await worker?.evaluate(() => void setTimeout(() => {
        throw new Error('stopped by the test');
      }));
      await visit.says('.problem', /stopped unexpectedly.*stopped by the test.*One thread needs less memory/s);
      visit.errors.length = 0; // what was thrown is in the console, too
      await tab.click('#retry-one');
      await visit.finished();
      assert.match(await tab.$$eval('summary', (all) => all[1].textContent ?? ''), /1 thread$/);
      assert.match(await visit.text('#result-facts'), /48 samples/);
      assert.ok((await visit.downloaded('.onnx')).length > 1_000_000);
    }));
  }
});
