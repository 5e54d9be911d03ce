// The element of the installed package, in Chromium and Firefox: it quantizes in a frame and gives
// the bytes that Node gives.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch } from '../../scripts/browsers.mjs';
import { archive } from '../e2e/archive.mjs';
import { npy } from '../e2e/model.mjs';
import { inNode, project, write } from './installed.mjs';
import { model } from './programs.mjs';
import { isolated, serveFolder } from './static.mjs';

/** @type {Awaited<ReturnType<typeof serveFolder>>} */
let site;
before(async () => {
  write('exact.onnx', model);
  const sample = (/** @type {number} */ seed) => npy(Float32Array.from({ length: 48 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1), [1, 3, 4, 4]);
  write('samples.zip', archive(Object.fromEntries([0, 1, 2, 3].map((seed) => [`${seed}.npy`, sample(seed)]))));
  write('element.html', `<!doctype html><meta charset="utf-8"><title>element</title>
    <script type="module" src="/node_modules/octet-onnx/studio/www/element.js"></script>
    <octet-studio model="exact.onnx" samples="samples.zip" panels="overview,graph"></octet-studio>`);
  site = await serveFolder(project(), isolated);
});
after(() => site?.close());

for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
  test(`the element of the package quantizes in ${name}`, async () => {
    const browser = await launch(name);
    try {
      const page = await browser.newPage();
      await page.goto(`${site.url}/element.html`);
      const bytes = await page.evaluate(async () => {
        await customElements.whenDefined('octet-studio');
        const studio = /** @type {import('../../www/element.js').OctetStudioElement} */ (document.querySelector('octet-studio'));
        await studio.quantize();
        return [...(await studio.result())?.bytes ?? []];
      });
      assert.deepEqual(bytes, JSON.parse(inNode()).bytes);
    } finally {
      await browser.close();
    }
  });
}
