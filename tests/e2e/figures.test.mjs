// Figures of a result: they are correct and consistent, and the page stays usable while they are
// measured.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convolution, depthwise, encoder, npy } from './model.mjs';
import { inBrowsers } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

const picture = (/** @type {number} */ index) => npy(Float32Array.from({ length: 48 }, (_, i) => (((i + index) * 7) % 19) / 9 - 1), [1, 3, 4, 4]);
const vector = (/** @type {number} */ index) => npy(Float32Array.from({ length: 24 }, (_, i) => Math.sin(i * 3 + index)), [1, 24]);

/**
 * From now on worker calls of that name never return, or are unknown.
 *
 * @param {Visit} visit @param {string} call @param {'held' | 'failed'} how
 */
const meddle = ({ tab }, call, how) => tab.evaluate((wanted, what) => {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (/** @type {any[]} */ ...args) {
    if (args[0]?.call !== wanted) return post.apply(this, /** @type {any} */ (args));
    if (what === 'failed') post.call(this, { ...args[0], call: 'nonsense' });
  };
}, call, how);

/** @param {Visit} visit @param {string} title */
const headline = ({ tab }, title) => tab.$$eval('.headline', (all, wanted) => {
  const found = all.find((one) => one.querySelector('.note')?.textContent === wanted);
  return { value: found?.querySelector('strong')?.textContent ?? '', text: found?.textContent ?? '', bad: found?.classList.contains('bad') };
}, title);

inBrowsers('figures', (visit) => {
  test('an output that is passed through heads nothing; the worst of the others does, until another is chosen', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(encoder(), [0, 1, 2].map(vector));
    await visit.measureBoth();
    await visit.says('.headlines', /ms in float/);
    const outputs = await tab.$$eval('#headline-output option', (all) => all.map((one) => one.textContent));
    assert.deepEqual(outputs, ['embedding (embedding)', 'probabilities (classes)']);
    await tab.select('#headline-output', 'embedding');
    const { value, text } = await headline(visit, 'Accuracy');
    assert.match(value, /^[01]\.\d{4}$/);
    assert.match(text, /cosine similarity to the float embedding.*on 3 samples; SQNR \d+\.\d dB/);
    await tab.select('#headline-output', 'probabilities');
    await visit.says('.headlines', /top-1 agreement with float.*SQNR/);
    assert.match(await visit.text('[aria-labelledby=accuracy-title]'), /ypassed through.*embeddingembedding[\d.]+ dB/);
    // The error split into weights and activations.
    await tab.click('#split');
    await visit.says('#split-table', /embedding[\d.]+ dB[\d.]+ dB[\d.]+ dB/);
    await visit.says('[aria-labelledby=accuracy-title]', /Weights only.*Activations only/);
  }));

  test('one measurement has one figure: the timeline says of a run what the overview says', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), [picture(0)]);
    await visit.judged();
    await tab.waitForSelector('#measure-time:not([disabled])');
    await tab.click('#measure-time');
    await visit.says('.headlines', /ms in float/);
    const { value, text } = await headline(visit, 'Inference time');
    await tab.click('#tab-timeline');
    await tab.waitForSelector('.layer-lane');
    const said = await tab.$$eval('.lane figcaption', (all) => all.map((one) => /: ([\d.]+ ms) a run/.exec(one.textContent ?? '')?.[1]));
    assert.equal(said[1], value);
    assert.ok(text.includes(`${said[0]} in float`), `${text}: ${said[0]}`);
  }));

  test('a model that grew is told so; what became half precision is not said to be integers', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), [picture(0)]);
    const grown = await headline(visit, 'Size');
    assert.match(grown.text, /larger than the float model/);
    assert.equal(grown.bad, true);
    assert.match(await visit.text('#result-facts'), /In integer arithmetic2 of 2 operators/);
    await tab.select('#scheme', 'float16');
    await visit.shows(2);
    assert.match(await visit.text('#result-facts'), /In half precision\d of 2 operators/);
    assert.doesNotMatch(await visit.text('#result-facts'), /In integer arithmetic/);
  }));

  for (const [half, call, other] of [['error', 'compare', 'Inference time'], ['time', 'run', 'Accuracy']]) {
    test(`where the ${half} can’t be measured the other half is, and it is said at its place`, () => visit({}, async (visit) => {
      const { tab } = visit;
      await meddle(visit, call, 'failed');
      await visit.quantized(convolution(), [picture(0)]);
      await visit.measureBoth();
      await visit.says(`#unmeasured-${half}`, /could not be measured: ./);
      await tab.waitForFunction((title) => [...document.querySelectorAll('.headline')].some((one) => one.textContent?.startsWith(title) && /\d/.test(one.querySelector('strong')?.textContent ?? '')), {}, other);
      assert.equal(await tab.$('.problem'), null);
    }));
  }

  test('where layers can’t be compared the outputs are told alone, with the reason', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), [picture(0)]);
    await visit.says('[aria-labelledby=accuracy-title]', /The layers that add most/);
    await tab.evaluate(async () => {
      const { comparison } = await import(/** @type {string} */ ('./www/state/page.js'));
      const { found, ...which } = comparison.value;
      comparison.value = { ...which, found: { ...found, layers: [], worst: [], layersFailed: 'the shapes of `c` follow from values' } };
    });
    await visit.says('#no-layers', /Only the outputs could be compared, not the layers: the shapes of `c`/i);
    assert.match(await visit.text('[aria-labelledby=accuracy-title]'), /yvalues[\d.]+ dB/);
    assert.doesNotMatch(await visit.text('[aria-labelledby=accuracy-title]'), /The layers that add most/);
    assert.match((await headline(visit, 'Accuracy')).value, /dB/);
  }));

  test('figures that arrive leave what is in use as it is: the focus, a download, a picture that is dragged', () => visit({}, async (visit) => {
    const { tab } = visit;
    await tab.evaluate(() => {
      const post = Worker.prototype.postMessage;
      let held = true;
      Worker.prototype.postMessage = function (/** @type {any[]} */ ...args) {
        const send = () => {
          held = false; // the comparison of the layers follows that of the outputs
          post.apply(this, /** @type {any} */ (args));
        };
        if (held && args[0]?.call === 'compare') Object.assign(window, { letThrough: send });
        else post.apply(this, /** @type {any} */ (args));
      };
      Object.assign(window, { holdAgain: () => (held = true) });
    });
    const inUse = {
      overview: ['#done-title', '#measure-both', 'a[download$=".onnx"]', 'a[download$=".yaml"]', '#more-files'],
      layers: ['[data-sort=name]', '[data-row=conv]', '[data-key="open conv"]', '[data-key="method conv"]', '.grip', '#type-layer', '.inspector [data-key="wide conv"]'],
    };
    await visit.quantized(convolution(), [picture(0), picture(1)]);
    for (const [name, focused] of [['overview', 'a[download$=".onnx"]'], ['layers', '[data-key="method conv"]']]) {
      const selectors = inUse[/** @type {'overview' | 'layers'} */ (name)];
      await tab.click(`#tab-${name}`);
      if (name === 'layers') await (await tab.waitForSelector('[data-key="open conv"]'))?.click();
      for (const selector of selectors) await tab.waitForSelector(selector);
      await visit.says('.status-stage', /Comparing/);
      await tab.evaluate((all, focus) => {
        /** @type {any} */ (window).before = all.map((selector) => document.querySelector(selector));
        /** @type {HTMLElement | null} */ (document.querySelector(focus))?.focus();
        /** @type {any} */ (window).letThrough();
      }, selectors, focused);
      await visit.judged();
      await tab.waitForFunction(() => document.querySelector('.status-stage')?.textContent === 'Done');
      const gone = await tab.evaluate((all) => all.filter((selector, index) => document.querySelector(selector) !== /** @type {any} */ (window).before[index]), selectors);
      assert.deepEqual(gone, []);
      assert.equal(await tab.evaluate((focus) => document.activeElement === document.querySelector(focus), focused), true);
      // The columns of the figures are there, between those that stayed.
      if (name === 'layers') assert.ok(await tab.$('[data-sort=sqnr]'));
      await tab.evaluate(() => /** @type {any} */ (window).holdAgain());
      if (name === 'overview') await tab.select('#activations', 'u16');
      if (name === 'overview') await visit.shows(2);
    }
  }));

  test('after a step from the result the focus is on the heading of the next', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(depthwise({ layers: 2, channels: 3, size: 4, kernel: 3, dilation: 1 }), [picture(0)]);
    const step = '[aria-labelledby=accuracy-title] button[aria-label^="Keep float"]';
    await tab.waitForSelector(step);
    await tab.focus(step);
    await tab.keyboard.press('Enter');
    await visit.shows(2);
    await tab.waitForFunction(() => document.activeElement?.id === 'done-title');
    await visit.judged();
    assert.equal(await tab.evaluate(() => document.activeElement?.id), 'done-title');
  }));

  test('measuring locks nothing, and the next edit ends it', () => visit({}, async (visit) => {
    const { tab } = visit;
    await meddle(visit, 'compare', 'held');
    await visit.quantized(convolution(), [picture(0)]);
    await visit.says('.status-stage', /Comparing/);
    assert.equal(await tab.$eval('#run', (button) => button.getAttribute('aria-disabled')), null);
    assert.equal(await tab.$eval('.side fieldset', (set) => /** @type {HTMLFieldSetElement} */ (set).disabled), false);
    assert.ok((await visit.downloaded('.onnx')).length > 200);
    await tab.click('#tab-layers');
    await tab.waitForSelector('[aria-label="Keep conv float"]:not([disabled])');
    await tab.click('[aria-label="16 bits for conv"]');
    await visit.shows(2);
    // The next result is measured, too.
    await visit.says('.status-stage', /Comparing/);
    assert.equal(await tab.$('.problem'), null);
  }));

  test('a change of the settings is applied at once; undo and redo show what was made before, by key, too', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.quantized(convolution(), [picture(0)]);
    const first = await visit.downloaded('.onnx');
    await visit.judged();
    await tab.select('#activations', 'u16');
    await visit.shows(2);
    await visit.says('[aria-labelledby=accuracy-title]', /Measured on the loaded sample/);
    await visit.judged();
    const stages = await visit.stages();
    const chord = async (/** @type {import('puppeteer-core').KeyInput[]} */ ...keys) => {
      for (const key of keys) await tab.keyboard.down(key);
      for (const key of keys.reverse()) await tab.keyboard.up(key);
    };
    await tab.focus('#tab-overview');
    await chord('Control', 'z');
    await visit.shows(1);
    assert.equal(await tab.$eval('#activations', (field) => /** @type {HTMLSelectElement} */ (field).value), 'u8');
    assert.deepEqual(await visit.downloaded('.onnx'), first);
    assert.match(await visit.text('[aria-labelledby=accuracy-title]'), /Measured on the loaded sample/);
    await chord('Control', 'y');
    await visit.shows(2);
    await chord('Control', 'z');
    await visit.shows(1);
    await chord('Control', 'Shift', 'z');
    await visit.shows(2);
    await tab.click('#undo');
    await visit.shows(1);
    await tab.click('#redo');
    await visit.shows(2);
    // Nothing was computed again, and nothing is listed twice.
    assert.doesNotMatch(await stages(), /Writing|Comparing|Calibrating/);
    await tab.click('#tab-layers');
    await tab.waitForSelector('.run-history tbody tr');
    assert.equal((await tab.$$('.run-history tbody tr')).length, 2);
    // Text fields keep their own undo.
    await tab.type('#layer-filter', 'conv');
    await chord('Control', 'z');
    assert.equal(await visit.shown(), 2);
  }));
});
