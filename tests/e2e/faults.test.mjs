// Faults of the browser: a worker that is ended in any call, memory that is refused, a frozen tab,
// two tabs. The page says what happened, and nothing already made is lost.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { anySize, convolution, npy } from './model.mjs';
import { inBrowsers, scratch } from './walk.mjs';

/** Runs before the page's scripts: the worker ends as it receives the call that `endAt` names. */
function endWorkers() {
  const page = /** @type {any} */ (window);
  page.endAt = null;
  page.Worker = class extends Worker {
    /** @param {any[]} message */
    postMessage(...message) {
      // @ts-ignore: it has two forms
      super.postMessage(...message);
      if (page.endAt === null || message[0]?.call !== page.endAt) return;
      page.endAt = null;
      this.terminate();
    }
  };
}

/** A sample of the small models. @param {number} seed */
function sample(seed) {
  const file = join(scratch, `fault-${seed}.npy`);
  writeFileSync(file, npy(Float32Array.from({ length: 48 }, (_, i) => ((i * 7 + seed * 5) % 19) / 9 - 1), [1, 3, 4, 4]));
  return file;
}

/**
 * The built packages with threads whose memory has this many pages at most.
 *
 * @param {number} pages
 */
function withPages(pages) {
  const folder = join(scratch, `pages-${pages}`);
  cpSync(resolve('pkg'), folder, { recursive: true });
  const file = join(folder, 'threads', 'octet.js');
  const script = readFileSync(file, 'utf8');
  const small = script.replace(/maximum: ?\d+/, `maximum:${pages}`);
  assert.notEqual(small, script, 'the memory is not as it was when this test was written');
  writeFileSync(file, small);
  return folder;
}

inBrowsers('faults of the browser', (visit, name) => {
  test('a worker may end in any call: the page says so, keeps everything and goes on', () => visit({}, async (visit) => {
    const { tab } = visit;
    tab.setDefaultTimeout(240_000);
    await tab.evaluateOnNewDocument(endWorkers);
    await visit.load();
    const endAt = (/** @type {string} */ call) => tab.evaluate((wanted) => { /** @type {any} */ (window).endAt = wanted; }, call);
    const said = () => visit.says('.problem', /stopped unexpectedly.*the browser ended its worker/s);

    await endAt('open');
    await visit.drop({ 'fault.onnx': convolution() });
    await said();
    await visit.drop({ 'fault.onnx': convolution() });
    await tab.waitForSelector('#card-title');

    await visit.choose('choose-samples', sample(1), sample(2));
    await visit.says('#run-why', /Your file is not changed/);
    /** @type {Buffer | null} */
    let model = null;
    for (const call of ['calibrate', 'quantize']) {
      await tab.select('#method', model ? 'minmax' : 'entropy');
      await endAt(call);
      await visit.start();
      await said();
      // The result before is still here.
      if (model) assert.deepEqual(await visit.downloaded('.onnx'), model);
      await visit.press('Try again');
      await tab.waitForFunction(() => !document.querySelector('.problem') && document.querySelector('#done-title'));
      await visit.judged();
      assert.match(await visit.text('#result-facts'), /2 samples/);
      model = await visit.downloaded('.onnx');
    }

    await endAt('compare');
    await tab.select('#method', 'percentile');
    await visit.says('#unmeasured-error', /the browser ended its worker/i);
    assert.ok((await visit.downloaded('.onnx')).length > 100);
    await visit.quantize();
    await visit.judged();
    await endAt('run');
    await visit.measureBoth();
    await visit.says('#unmeasured-time', /the browser ended its worker/i);
    assert.ok((await visit.downloaded('.onnx')).length > 100);
  }));

  test('memory that is refused is named, and what needs less still works', () => visit({ mounts: { '/pkg/': withPages(900) } }, async (visit) => {
    const { tab } = visit;
    tab.setDefaultTimeout(240_000);
    await visit.drop({ 'any.onnx': anySize() });
    await tab.waitForSelector('#card-title');
    await visit.choose('choose-samples', sample(1));
    await visit.says('#run-why', /Your file is not changed/);
    await visit.quantize();
    await visit.judged();
    const model = await visit.downloaded('.onnx');
    const side = 2400;
    const large = join(scratch, 'large.npy');
    writeFileSync(large, npy(new Float32Array(3 * side * side).fill(0.5), [1, 3, side, side]));
    await visit.choose('choose-samples', large);
    await visit.says('#left', /2 samples/);
    await visit.start();
    await visit.says('.problem', /memory/i);
    assert.deepEqual(await visit.downloaded('.onnx'), model, 'the result before is still here');
    await visit.press('Close');
    await visit.press('Remove all');
    await visit.choose('choose-samples', sample(1));
    await visit.says('#left', /1 sample/);
    await visit.says('#run-why', /Your file is not changed/);
    await visit.quantize();
    assert.deepEqual(await visit.downloaded('.onnx'), model);
  }));

  if (name === 'chromium') {
    test('a tab that is frozen in a run goes on when it is thawed', () => visit({}, async (visit) => {
      const { tab } = visit;
      await visit.ready(12);
      await visit.start();
      await visit.says('#progress-title', /Calibrating/);
      const devtools = await tab.createCDPSession();
      await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
      await new Promise((next) => setTimeout(next, 1500));
      await devtools.send('Page.setWebLifecycleState', { state: 'active' });
      await visit.finished();
      assert.match(await visit.text('#result-facts'), /12 samples/);
    }));
  }

  test('two tabs do not disturb each other, and the later work is what is kept', () => visit({}, async (visit) => {
    const { tab } = visit;
    tab.setDefaultTimeout(240_000);
    const other = await tab.browser().newPage();
    try {
      await other.goto(visit.server?.url ?? '');
      await other.waitForFunction(() => /threads?$/.test(document.querySelectorAll('summary')[1]?.textContent ?? ''));
      await tab.bringToFront(); // only the tab in front draws, and so waits for its conditions
      await visit.drop({ 'first.onnx': convolution() });
      await tab.waitForSelector('#card-title');
      await visit.choose('choose-samples', sample(1));
      await visit.says('#run-why', /Your file is not changed/);
      await visit.quantize();
      const model = await visit.downloaded('.onnx');
      await other.bringToFront();
      const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await other.waitForSelector('input[data-pick=choose-model]'));
      const file = join(scratch, 'second.onnx');
      writeFileSync(file, convolution());
      await input.uploadFile(file);
      await other.waitForSelector('#card-title');
      await visit.stored(other);
      await tab.bringToFront();
      const before = await visit.shown();
      await tab.select('#activations', 'i8');
      await visit.shows(before + 1);
      const later = await visit.downloaded('.onnx');
      assert.notDeepEqual(later, model);
      await visit.stored();
      await visit.load();
      await visit.says('#stored', /first\.onnx/);
      await tab.click('#restore');
      await tab.waitForSelector('#done-title');
      assert.match(await visit.text('#left'), /1 sample/);
      assert.deepEqual(await visit.downloaded('.onnx'), later);
    } finally {
      await other.close();
    }
  }));
});
