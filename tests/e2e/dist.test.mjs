// The folder of `make dist` on a host without headers, under its own path: isolated by its service
// worker, and usable offline.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, test } from 'node:test';
import { launch, scratch } from './walk.mjs';

const folder = join(scratch, 'dist');
execFileSync(process.execPath, ['scripts/dist.mjs', '--out', folder, '--demo', join(scratch, 'none')]);

/** @type {Record<string, string>} */
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.wasm': 'application/wasm', '.webmanifest': 'application/manifest+json' };
const path = '/some/where/';
/** @type {string[]} */
let missing = [];
/** True while the host is unreachable. */
let gone = false;
const server = createServer((request, response) => {
  if (gone) return void request.socket.destroy();
  const asked = new URL(request.url ?? '/', 'http://host').pathname;
  const file = asked.startsWith(path) ? join(folder, asked.slice(path.length) || 'index.html') : '';
  if (!file.startsWith(folder) || !statSync(file, { throwIfNoEntry: false })?.isFile()) {
    missing.push(asked);
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
});
await new Promise((done) => server.listen(0, 'localhost', () => done(undefined)));
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
after(() => (server.close(), server.closeAllConnections()));

/** @param {import('puppeteer-core').Page} page */
const ready = (page) => page.waitForFunction(() => /^(Full|Baseline) build/.test(document.querySelectorAll('summary')[1]?.textContent ?? ''));

for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
  test(`a static host without headers gets threads and a page that works offline, in ${name}`, async () => {
    missing = [];
    gone = false;
    const browser = await launch(name);
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(120_000);
      await page.goto(`http://localhost:${port}${path}`);
      // The page reloads itself once.
      await page.waitForFunction(() => crossOriginIsolated && navigator.serviceWorker.controller !== null);
      await ready(page);
      assert.deepEqual(missing.filter((asked) => !/favicon|demo\/manifest/.test(asked)), []);
      gone = true;
      server.closeAllConnections();
      // A separate page: the driver may lose a page that changed its process.
      const again = await browser.newPage();
      await again.goto(`http://localhost:${port}${path}`);
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
