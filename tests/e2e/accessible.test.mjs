// Checks every state of the page, light and dark, wide and narrow, against axe-core's rules for
// WCAG 2.2 AA.

import assert from 'node:assert/strict';
import { linkSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { anySize, convolution, dense, detector, npy, png } from './model.mjs';
import { features } from '../../www/features/list.js';
import { inBrowsers, scratch, silentThreads } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

const axe = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** Problems are collected, so that one run reports all of them. @type {string[]} */
let wrong = [];

/** @param {Visit} visit @param {string} state */
async function clean(visit, state) {
  for (const theme of ['light', 'dark']) {
    await visit.tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
    for (const width of [1280, 320]) {
      await visit.tab.setViewport({ width, height: width === 320 ? 640 : 900 });
      const found = await visit.tab.evaluate(async () => {
        const { violations } = await /** @type {any} */ (window).axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] });
        return violations.map((/** @type {any} */ one) => `${one.id}: ${one.nodes.slice(0, 3).map((/** @type {any} */ node) => `${node.target} ${node.failureSummary.split('\n')[1]?.trim()}`).join(' | ')}`);
      });
      wrong.push(...found.map((/** @type {string} */ one) => `${state}, ${theme}, ${width} pixels: ${one}`));
      // At 320 pixels (400 % of 1280) nothing but tables, the graph and the like may need a second direction to scroll.
      const over = await visit.tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) wrong.push(`${state}: ${over} pixels too wide at ${width}`);
    }
  }
  await visit.tab.setViewport({ width: 1280, height: 900 });
}

inBrowsers('accessibility', (visit) => {
  test('every state is clean in light and dark, and fits at 400 %', () => visit({}, async (visit) => {
    const { tab } = visit;
    wrong = [];
    // Injected through the browser, as the page's policy allows no foreign script.
    await tab.evaluate(axe);
    await clean(visit, 'empty');
    await visit.drop({ 'small.onnx': convolution() });
    await tab.waitForSelector('#card-title');
    await clean(visit, 'ready without samples');
    const pair = [0, 1].map((index) => join(scratch, `accessible-${index}.npy`));
    pair.forEach((file, index) => writeFileSync(file, npy(Float32Array.from({ length: 48 }, (_, i) => ((i * 7 + index) % 19) / 9 - 1), [1, 3, 4, 4])));
    await visit.choose('choose-samples', ...pair);
    await visit.says('#run-why', /Your file is not changed/);
    await tab.$eval('#advanced', (details) => details.setAttribute('open', ''));
    await clean(visit, 'ready');
    await visit.quantize();
    await visit.judged();
    await clean(visit, 'done');
    await tab.click('#tab-layers');
    await tab.waitForSelector('.virtual .link');
    await tab.click('.virtual .link');
    await tab.waitForSelector('.histogram .bars');
    await tab.click('[aria-label="Keep conv float"]');
    await tab.waitForSelector('.run-history tbody tr:nth-child(1), .problem');
    await clean(visit, 'layers');
    if (await tab.$('.problem')) await visit.press('Close');
    await tab.$eval('#close-inspector', (button) => /** @type {HTMLElement} */ (button).click());
    await tab.click('#tab-overview');
    await visit.measureBoth();
    await visit.says('[aria-labelledby=latency-title]', /10 runs each/);
    await tab.$eval('#split', (button) => /** @type {HTMLElement} */ (button).click());
    await tab.waitForSelector('#split-table');
    await clean(visit, 'measured');
    // Every tab that is not opened above.
    for (const { name } of features.filter(({ name, place, onHub }) => place === 'tab' && !onHub && !['overview', 'layers'].includes(name))) {
      await tab.click(`#tab-${name}`);
      await tab.waitForSelector(`#panel-${name} > *`);
      if (name === 'graph') await tab.waitForSelector('.graph-picture .box');
      if (name === 'search') {
        await tab.click('#search-choices summary');
        await tab.click('#search-start');
        await visit.says('#search-failure', /Nothing in the model can be quantized/);
        await clean(visit, 'a search that is refused');
        await tab.$eval('#undo', (button) => /** @type {HTMLElement} */ (button).click());
        await tab.click('#search-start');
        await tab.waitForSelector('#search-result');
        await tab.click('#search-tensors summary');
      }
      if (name === 'compare') await tab.click('[data-linked=conv] .link');
      await clean(visit, name);
    }
    await tab.click('#tab-overview');
    await visit.press('Remove all');
    await visit.drop({ 'detector.onnx': detector(), 'a.png': png(64, 128), 'b.png': png(57, 33), 'c.png': png(90, 100) });
    await tab.waitForSelector('#resize');
    await tab.select('#resize', 'none');
    await visit.says('#unusable', /Skip all 2/);
    await tab.$eval('#proposal', (details) => details.setAttribute('open', ''));
    await clean(visit, 'photos of which some do not fit');
    await visit.drop({ 'broken.onnx': [1, 2, 3] });
    await tab.waitForSelector('.problem');
    await clean(visit, 'error');
    assert.deepEqual(wrong, []);
  }));

  test('a model in pieces is clean, from the question for its weights to the result', () => visit({}, async (visit) => {
    const { tab } = visit;
    wrong = [];
    const { model, weights } = dense({ layers: 2, side: 256, external: true });
    const data = join(scratch, 'weights.bin');
    writeFileSync(data, weights);
    await tab.goto(`${visit.server?.url}?pieces`);
    await tab.waitForSelector('.drop');
    await tab.evaluate(axe);
    await visit.drop({ 'pieces.onnx': model });
    await visit.says('.asks li', /weights\.bin/);
    await clean(visit, 'weights wanted');
    await visit.choose('choose-weights', data);
    await tab.waitForSelector('#convert');
    await clean(visit, 'planned');
    await tab.click('#convert');
    await tab.waitForSelector('#large-done');
    await clean(visit, 'converted');
    assert.deepEqual(wrong, []);
    await tab.click('#discard');
    await tab.waitForSelector('#convert');
  }));

  test('opening and calibrating are clean too, and progress is announced', () => visit({ mounts: { '/pkg/': silentThreads() } }, async (visit) => {
    const { tab } = visit;
    wrong = [];
    // Restarted: threads that never answer delay the engine, and the opening of a model, for ten
    // seconds.
    await tab.goto(visit.server?.url ?? '');
    await tab.evaluate(axe);
    await tab.waitForSelector('#choose-model');
    await visit.drop({ 'any.onnx': anySize() });
    await tab.waitForSelector('#opening-title');
    await clean(visit, 'opening');
    assert.ok(await tab.$('#opening-title'), 'the model was opened before all of it was looked at');
    await tab.waitForSelector('#card-title');
    // Far more samples than any machine runs during the check; all are one file.
    const count = 400;
    const side = 2048;
    const files = Array.from({ length: count }, (_, index) => join(scratch, `slow-${index}.npy`));
    const bytes = npy(new Float32Array(3 * side * side).fill(0.5), [1, 3, side, side]);
    writeFileSync(files[0], bytes);
    for (const file of files.slice(1)) linkSync(files[0], file);
    await visit.choose('choose-samples', ...files);
    await visit.says('#run-why', /Your file is not changed/);
    await tab.evaluate(() => {
      const heard = (/** @type {any} */ (window).heard = /** @type {string[]} */ ([]));
      const line = document.querySelector('octet-status [role=status]');
      if (line) new MutationObserver(() => heard.push(line.textContent ?? '')).observe(line, { childList: true, characterData: true, subtree: true });
    });
    await visit.start();
    await tab.waitForSelector('#enough:not([aria-disabled])');
    await clean(visit, 'calibrating');
    assert.match(await visit.text('#progress-title'), /Calibrating/, 'the run ended before all of it was looked at');
    await tab.waitForFunction((all) => /** @type {any} */ (window).heard.some((/** @type {string} */ text) => new RegExp(`^\\d+ of ${all} samples, about`).test(text)), {}, count);
    await tab.keyboard.press('Escape');
    await tab.waitForFunction(() => /** @type {any} */ (window).heard.some((/** @type {string} */ text) => /cancelled/.test(text)));
    assert.ok((await tab.evaluate(() => /** @type {any} */ (window).heard)).includes('The run has started.'));
    assert.deepEqual(wrong, []);
  }));

  test('who wants less motion gets none', () => visit({}, async (visit) => {
    const { tab } = visit;
    const moving = (/** @type {string} */ wish) => tab.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: wish }]).then(() => tab.evaluate(() =>
      [...document.querySelectorAll('*')].filter((element) => {
        const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
        return transitionDuration.split(', ').some((time) => parseFloat(time) > 0) || animationName !== 'none' || scrollBehavior === 'smooth';
      }).length));
    await visit.drop({ 'small.onnx': convolution() });
    await tab.waitForSelector('#card-title');
    assert.ok((await moving('no-preference')) > 0);
    assert.equal(await moving('reduce'), 0);
  }));
}, ['chromium']);
