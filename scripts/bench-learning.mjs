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
  const all = availableParallelism();
  for (const name of only.length > 0 ? only : ['efficientnet_lite0']) {
    const folder = join(corpus, 'samples', name);
    const samples = readdirSync(folder).filter((file) => !file.startsWith('.')).map((file) => join(folder, file));
    const run = (/** @type {number} */ threads) => learned(browser, url, join(corpus, 'models', `${name}.onnx`), samples, threads);
    const row = `${name}, ${samples.length} samples`;
    const alone = await run(1);
    record('learning', `${row}, one thread`, alone, 's', { peer: null, ratio: null, target: 'none', holds: true });
    if (all === 1) continue;
    const seconds = await run(all);
    const most = patience(all);
    record('learning', `${row}, ${all} threads`, seconds, 's', { peer: 'one thread', peer_value: alone, ratio: seconds / alone, target: `at most ${most} s`, holds: seconds <= most });
  }
}

/**
 * The seconds of a run on the page.
 *
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {string} model
 * @param {string[]} samples
 * @param {number} threads
 */
async function learned(browser, url, model, samples, threads) {
  // A context of its own, in which no journal of another run is kept.
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(1_200_000);
  try {
    // The page starts as many threads as there are processors.
    await page.evaluateOnNewDocument((count) => Object.defineProperty(navigator, 'hardwareConcurrency', { value: count }), threads);
    await openModel(page, url, [model]);
    await page.waitForSelector('#card-title');
    await chooseSamples(page, samples);
    await page.$eval('#document', (area, text) => (/** @type {HTMLTextAreaElement} */ (area).value = text), JSON.stringify(settings));
    await page.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
    await page.waitForSelector('#run:not([aria-disabled])');
    const began = performance.now();
    await page.$eval('#run', (button) => /** @type {HTMLElement} */ (button).click());
    await page.waitForSelector('#learned');
    return (performance.now() - began) / 1000;
  } finally {
    await context.close();
  }
}
