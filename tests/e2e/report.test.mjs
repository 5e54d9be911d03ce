// The HTML report, opened from a disk as its reader opens it: complete, alone, and readable on a
// phone.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { boxesAndLogits, convolution, dense, png } from './model.mjs';
import { inBrowsers, out, scratch } from './walk.mjs';

/** A picture of one colour and a stripe. @param {number} seed */
const stripe = (seed) => png(96, 64, (x, y, channel) => (x > 20 * seed && x < 20 * seed + 30 ? 40 + 60 * channel : (seed * 37 + channel * 50 + y) % 256));
const pictures = Object.fromEntries([0, 1, 2, 3].map((seed) => [`${seed}-with-a-name-that-is-longer-than-a-phone-is-wide.png`, stripe(seed)]));
const table = Buffer.from('width,height,weight,age\n0.5,2,3,4\n-1,3,5,6\n0,1,2,1\n');

/** @type {{ what: string, stem: string, model: Buffer, data: Record<string, Buffer>, images: number }[]} */
const reports = [
  { what: 'detector', stem: 'detector-with-a-long-name', model: boxesAndLogits(), data: pictures, images: 2 },
  { what: 'segmenter', stem: 'segmenter', model: convolution({ x: [1, 3, 32, 32], y: [1, 2, 32, 32] }), data: pictures, images: 3 },
  { what: 'table', stem: 'table', model: dense({ layers: 2, side: 4 }).model, data: { 'pets.csv': table }, images: 0 },
];

inBrowsers('the HTML report', (visit, browser) => {
  for (const { what, stem, model, data, images } of reports) {
    test(`of a ${what} opens alone, with its pictures, and fits a phone`, () => visit({}, async (visit) => {
      await visit.drop({ [`${stem}.onnx`]: model, ...data });
      await visit.says('#run-why', /Your file is not changed/);
      await visit.quantize();
      await visit.measureBoth();
      await visit.says('[aria-labelledby=latency-title]', /10 runs each/);
      await visit.tab.$eval('#more-files', (details) => details.setAttribute('open', ''));
      await visit.press('HTML report');
      const file = join(scratch, `${stem}-${browser}.html`);
      writeFileSync(file, await visit.saved(`${stem}_int8.report.html`));

      const reader = await visit.tab.browser().newPage();
      try {
        /** @type {string[]} */
        const seen = [];
        reader.on('request', (request) => seen.push(request.url()));
        reader.on('pageerror', (error) => seen.push(String(error)));
        reader.on('console', (message) => seen.push(`${message.type()}: ${message.text()}`));
        const address = pathToFileURL(file).href;
        for (const [width, scheme] of /** @type {const} */ ([[1280, 'light'], [390, 'light'], [1280, 'dark'], [390, 'dark']])) {
          await reader.setViewport({ width, height: 900 });
          await reader.goto(address);
          // The report follows the reader's system; its own wish stands for that here.
          await reader.evaluate((wish) => document.documentElement.style.setProperty('color-scheme', wish), scheme);
          const found = await reader.evaluate(() => ({
            heading: document.querySelector('h1')?.textContent,
            parts: [...document.querySelectorAll('h2')].map((one) => one.textContent),
            pictures: [...document.images].map(({ complete, naturalWidth, width, alt }) => complete && naturalWidth > 0 && width > 40 && alt !== ''),
            wide: document.documentElement.scrollWidth - innerWidth,
            script: document.querySelectorAll('th button').length,
          }));
          assert.equal(found.heading, `${stem}.onnx`);
          assert.match(found.parts.join('; '), /Verdict: .*Predictions of both models/);
          assert.ok(found.pictures.length >= images && found.pictures.every(Boolean), `${found.pictures}`);
          assert.ok(found.wide <= 0, `${found.wide} pixels wider than ${width}`);
          assert.ok(found.script > 0);
          await reader.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `report-${what}-${browser}-${scheme}-${width}`)}.png`), fullPage: width === 390 });
        }
        // The tables are sorted by the report's own script.
        await reader.click('th button');
        assert.ok(await reader.$('th[aria-sort=descending]'));
        // What stands in the file itself, or in the browser, asks nobody.
        const strange = seen.filter((one) => one !== address && !one.startsWith('data:'));
        assert.deepEqual(strange, []);
      } finally {
        await reader.close();
      }
    }));
  }
});
