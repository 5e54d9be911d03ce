// An older browser at a server that has only the build for current browsers, as `make serve`
// creates it.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../scripts/serve.mjs';
import { launch, scratch, withoutRelaxedSimd } from './walk.mjs';

for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
  test(`${name} without relaxed SIMD is told how to get the build it needs`, async () => {
    const packages = join(scratch, `${name}-pkg`);
    mkdirSync(packages);
    cpSync('pkg/vendor', join(packages, 'vendor'), { recursive: true });
    const server = await serve({ port: 0, mounts: { '/pkg/': packages } });
    const browser = await launch(name);
    try {
      const page = await browser.newPage();
      await page.evaluateOnNewDocument(withoutRelaxedSimd);
      await page.goto(server.url);
      await page.waitForFunction(() => /could not start/.test(document.body.textContent ?? ''));
      const text = await page.evaluate(() => document.body.textContent ?? '');
      assert.match(text, /The engine could not start: This browser needs the build for older browsers, which this server lacks\./);
      assert.match(text, /make serve VARIANTS=all/);
    } finally {
      await browser.close();
      await server.close();
    }
  });
}
