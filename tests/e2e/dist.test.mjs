// The folder of `make dist` on a host without headers, under its own path: isolated by its service
// worker, and usable offline.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { staticHost } from './host.mjs';
import { launch } from './walk.mjs';

const host = await staticHost('dist');
after(host.close);

/** @param {import('puppeteer-core').Page} page */
const ready = (page) => page.waitForFunction(() => /^(Full|Baseline) build/.test(document.querySelectorAll('summary')[1]?.textContent ?? ''));

for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
  test(`a static host without headers gets threads and a page that works offline, in ${name}`, async () => {
    host.missing = [];
    host.gone = false;
    const browser = await launch(name);
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(240_000);
      await page.goto(host.url);
      // The page reloads itself once.
      await page.waitForFunction(() => crossOriginIsolated && navigator.serviceWorker.controller !== null);
      await ready(page);
      assert.deepEqual(host.missing.filter((asked) => !/favicon|demo\/manifest/.test(asked)), []);
      host.leave();
      // A separate page: the driver may lose a page that changed its process.
      const again = await browser.newPage();
      await again.goto(host.url);
      await ready(again);
      assert.equal(await again.evaluate(() => crossOriginIsolated), true);
      // Workers get the policy from a header, as the page's meta tag does not reach them.
      const headers = await again.evaluate(async () => (await fetch('www/worker.js')).headers.get('content-security-policy'));
      assert.match(headers ?? '', /connect-src 'self'/);
      // The other pages work offline, too, each with its own policy.
      for (const [file, directive] of [['hub.html', /connect-src 'self' https:\/\/huggingface\.co/], ['embed.html', /frame-ancestors 'self'/], ['index.html', /connect-src 'self';.*frame-ancestors 'none'/]]) {
        assert.match(await again.evaluate(async (name) => (await fetch(name)).headers.get('content-security-policy') ?? '', /** @type {string} */ (file)), /** @type {RegExp} */ (directive));
      }
    } finally {
      await browser.close();
    }
  });
}
