// Panels that load on demand: each has its style when it is first seen, and a failed load can be
// repeated.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { features } from '../../www/features/list.js';
import { convolution } from './model.mjs';
import { inBrowsers } from './walk.mjs';

const names = features.filter(({ onDemand, style, place, onHub }) => onDemand && style && place === 'tab' && !onHub).map(({ name }) => name);
/** Delay of style sheets in milliseconds: a panel without its style would be seen in that time. */
const delay = 300;

inBrowsers('panels on demand', (visit) => {
  test('a panel is not seen before its style, and a load that failed is repeated', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'small.onnx': convolution() });
    await tab.waitForSelector('#card-title');
    /** The style sheets that were asked for. @type {string[]} */
    const asked = [];
    await tab.setRequestInterception(true);
    tab.on('request', async (request) => {
      const name = /features\/(\w+)\/style\.css$/.exec(request.url())?.[1] ?? '';
      // The first request for each style sheet fails.
      const again = name === '' || asked.includes(name);
      if (name) asked.push(name);
      if (!again) return request.abort();
      if (name) await new Promise((done) => setTimeout(done, delay));
      await request.continue();
    });
    await tab.evaluate((wanted) => {
      /** @type {Record<string, boolean>} */
      const styled = /** @type {any} */ (window).styled = {};
      const hasStyle = (/** @type {string} */ name) => [...document.styleSheets].some(({ href }) => href?.endsWith(`/features/${name}/style.css`));
      const note = () => {
        for (const name of wanted) if (document.querySelector(`#panel-${name} > section`)) styled[name] ??= hasStyle(name);
      };
      new MutationObserver(note).observe(document.body, { childList: true, subtree: true });
    }, names);
    for (const name of names) {
      await tab.click(`#tab-${name}`);
      await visit.says(`#panel-${name}`, /could not be loaded \(its style sheet did not load\)/);
      await tab.click('#tab-overview');
      await tab.click(`#tab-${name}`);
      await tab.waitForSelector(`#panel-${name} > section`);
    }
    assert.deepEqual(await tab.evaluate(() => /** @type {any} */ (window).styled), Object.fromEntries(names.map((name) => [name, true])));
    assert.deepEqual(asked.filter((name) => names.includes(name)), names.flatMap((name) => [name, name]));
    // The browser reports the requests that were made to fail.
    visit.errors = visit.errors.filter((error) => !/Failed to load resource|style\.css/.test(error));
  }));
});
