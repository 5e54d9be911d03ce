// The README's picture, taken from the page itself; `make picture` puts it into docs.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inBrowsers, model, out, photos } from './walk.mjs';

/** @type {`${string}.png`} */
const file = `${join(out, 'page')}.png`;

inBrowsers('the picture', (visit) => {
  test('the page after a run, as the README shows it', (t) => visit({}, async (visit) => {
    await visit.tab.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value: 'light' }, { name: 'prefers-reduced-motion', value: 'reduce' },
    ]);
    await visit.tab.setViewport({ width: 1280, height: 956 });
    await visit.choose('choose-model', model);
    await visit.tab.waitForSelector('#card-title');
    // The first is shown; one of few details, since photos are most of the file.
    await visit.choose('choose-samples', ...photos.slice(11, 19));
    await visit.tab.waitForSelector('.pictures canvas');
    await visit.tab.select('#preset', 'lite');
    await visit.quantize();
    // Neither the ring of the focus nor a pointer over a button belongs to it.
    await visit.tab.evaluate(() => {
      /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
      scrollTo(0, 0);
    });
    await visit.tab.mouse.move(0, 0);
    await visit.tab.screenshot({ path: file });
    const { size } = statSync(file);
    t.diagnostic(`${file}: ${size} bytes`);
    // An empty page takes 10 kB.
    assert.ok(size > 60_000, `${size} bytes`);
  }));
}, ['chromium']);
