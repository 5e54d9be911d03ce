// Seconds of a search under a budget on the page. Rows for scripts/bench.mjs.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openModel } from './browsers.mjs';
import { chooseSamples } from './page-steps.mjs';

/** The most seconds of a search, by model. */
const patience = { efficientnet_lite0: 10, ppocr_det: 30 };

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {{ corpus: string, only: string[] }} options
 * @param {import('./bench-models.mjs').Record_} record
 */
export async function benchSearch(browser, url, { corpus, only }, record) {
  for (const [model, most] of Object.entries(patience)) {
    if (only.length > 0 && !only.includes(model)) continue;
    const folder = join(corpus, 'samples', model);
    const samples = readdirSync(folder).filter((file) => !file.startsWith('.'));
    const page = await browser.newPage();
    page.setDefaultTimeout(600_000);
    try {
      await openModel(page, url, [join(corpus, 'models', `${model}.onnx`)]);
      await page.waitForSelector('#card-title');
      await chooseSamples(page, samples.map((file) => join(folder, file)));
      await page.click('#tab-search');
      await page.waitForSelector('#search-kind');
      await page.select('#search-kind', 'sqnr');
      await page.$eval('#search-amount', (field) => {
        /** @type {HTMLInputElement} */ (field).value = '25';
        field.dispatchEvent(new Event('change', { bubbles: true }));
      });
      await page.waitForSelector('#search-start:not([aria-disabled])');
      const began = performance.now();
      await page.click('#search-start');
      await page.waitForSelector('#search-answer');
      const seconds = (performance.now() - began) / 1000;
      record('search', `${model}, a search under 25 dB`, seconds, 's', { peer: null, ratio: null, target: `at most ${most} s`, holds: seconds <= most });
    } finally {
      await page.close();
    }
  }
}
