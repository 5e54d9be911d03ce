// Takes the README's pictures from the page; `make picture` puts them into docs.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inBrowsers, model, out, photos } from './walk.mjs';

inBrowsers('the pictures', (visit) => {
  test('the page after a run and its layers, as the README shows them', (t) => visit({}, async (visit) => {
    await visit.tab.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value: 'light' }, { name: 'prefers-reduced-motion', value: 'reduce' },
    ]);
    await visit.tab.setViewport({ width: 1280, height: 956 });
    await visit.choose('choose-model', model);
    await visit.tab.waitForSelector('#card-title');
    // The first one is shown. It has few details, as photos dominate the file size.
    await visit.choose('choose-samples', ...photos.slice(11, 19));
    await visit.tab.waitForSelector('.pictures canvas');
    await visit.tab.select('#preset', 'lite');
    await visit.quantize();
    const { tab } = visit;
    /** @param {string} name @param {number} least an empty page takes 10 kB */
    const take = async (name, least) => {
      // The picture shows neither a focus ring nor a hovered button.
      await tab.evaluate(() => {
        /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
        scrollTo(0, 0);
        document.querySelector('.centre')?.scrollTo(0, 0);
      });
      await tab.mouse.move(0, 0);
      /** @type {`${string}.png`} */
      const file = `${join(out, name)}.png`;
      await tab.screenshot({ path: file });
      const { size } = statSync(file);
      t.diagnostic(`${file}: ${size} bytes`);
      assert.ok(size > least, `${size} bytes`);
    };
    await visit.measureBoth();
    await visit.says('[aria-labelledby=latency-title]', /10 runs each/);
    await take('page', 60_000);
    await tab.click('#tab-layers');
    await tab.waitForSelector('[data-sort=harm]');
    await tab.click('[data-sort=harm]');
    await tab.click('[data-sort=harm]');
    await tab.click('.virtual .link');
    await tab.waitForSelector('.histogram .bars');
    await take('layers', 60_000);
  }));
}, ['chromium']);
