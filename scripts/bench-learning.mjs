// Seconds in which weights learn on the page. Rows for scripts/bench.mjs.

import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { openModel } from './browsers.mjs';
import { chooseSamples } from './page-steps.mjs';

/** Each layer learns by AdaRound, from its integers by GPTQ. */
const settings = { rounding: 'gptq', finetune: 'adaround' };

/** The most seconds of a run with that many threads. @param {number} threads */
const patience = (threads) => (threads >= 4 ? 90 : 180);

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {{ corpus: string, only: string[] }} options `only`: models in place of EfficientNet-Lite0
 * @param {import('./bench-models.mjs').Record_} record
 */
export async function benchLearning(browser, url, { corpus, only }, record) {
  const threads = availableParallelism();
  for (const model of only.length > 0 ? only : ['efficientnet_lite0']) {
    const folder = join(corpus, 'samples', model);
    const samples = readdirSync(folder).filter((file) => !file.startsWith('.'));
    const page = await browser.newPage();
    page.setDefaultTimeout(1_200_000);
    try {
      await openModel(page, url, [join(corpus, 'models', `${model}.onnx`)]);
      await page.waitForSelector('#card-title');
      await chooseSamples(page, samples.map((file) => join(folder, file)));
      await page.$eval('#document', (area, text) => (/** @type {HTMLTextAreaElement} */ (area).value = text), JSON.stringify(settings));
      await page.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
      await page.waitForSelector('#run:not([aria-disabled])');
      const began = performance.now();
      await page.$eval('#run', (button) => /** @type {HTMLElement} */ (button).click());
      await page.waitForSelector('#learned');
      const seconds = (performance.now() - began) / 1000;
      const most = patience(threads);
      record('learning', `${model}, ${samples.length} samples, ${threads} threads`, seconds, 's', { peer: null, ratio: null, target: `at most ${most} s`, holds: seconds <= most });
    } finally {
      await page.close();
    }
  }
}
