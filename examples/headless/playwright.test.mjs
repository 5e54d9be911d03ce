// @ts-check
// The studio in a page of a headless browser, with Playwright: a test sees what a visitor sees. A
// failed assertion fails the CI job.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { model, samples, serve } from './site.mjs';

/** @import { OctetStudioElement } from '../../www/element.js' */

/** @type {Awaited<ReturnType<typeof serve>>} */
let site;
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  site = await serve();
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium' });
});
after(async () => {
  await browser?.close();
  site?.close();
});

test('the studio quantizes the model, and its page shows the verdict', async () => {
  const page = await browser.newPage();
  await page.goto(`${site.url}/studio.html`);
  const studio = page.locator('octet-studio');
  const { bytesBefore, bytesAfter, report } = await studio.evaluate(async (element, { model, samples }) => {
    await customElements.whenDefined('octet-studio');
    const octet = /** @type {OctetStudioElement} */ (element);
    const file = async (/** @type {string} */ path) => ({ path, blob: await (await fetch(path)).blob() });
    await octet.open(await file(model));
    await octet.addSamples(await Promise.all(samples.map(file)));
    await octet.quantize({ scheme: 'static' });
    const result = await octet.result();
    if (!result) throw new Error('The studio has no result.');
    return { bytesBefore: result.bytesBefore, bytesAfter: result.bytes.length, report: result.report };
  }, { model, samples });
  assert.ok(bytesAfter < 0.5 * bytesBefore, `${bytesBefore} bytes became ${bytesAfter}`);
  assert.match(report, /^proof:/m);

  const inside = studio.locator('iframe').contentFrame();
  const verdict = inside.locator('#verdict');
  await verdict.waitFor();
  assert.match(await verdict.getAttribute('data-decision') ?? '', /^(ship|look)$/);
  await inside.getByRole('tab', { name: 'Layers' }).click();
  await inside.getByRole('table').first().waitFor();
  await page.close();
});
