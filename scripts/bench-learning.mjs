// Seconds and memory in which weights learn on the page. Rows for scripts/bench.mjs.

import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { openModel } from './browsers.mjs';
import { chooseSamples } from './page-steps.mjs';

/**
 * Each layer learns by AdaRound, from its integers by GPTQ.
 *
 * @param {number} level place of the values between two layers: 1 is memory, 2 a file
 */
const settings = (level) => ({ rounding: 'gptq', finetune: { algorithm: 'adaround', mem_opt_level: level } });

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
    const run = (/** @type {number} */ threads, level = 1) => learned(browser, url, join(corpus, 'models', `${name}.onnx`), samples, { threads, level });
    const row = `${name}, ${samples.length} samples`;
    const alone = await run(1);
    record('learning', `${row}, one thread`, alone.seconds, 's', { peer: null, ratio: null, target: 'none', holds: true });
    const filed = await run(1, 2);
    record('learning', `${row}, values in a file`, filed.seconds, 's', { peer: 'in memory', peer_value: alone.seconds, ratio: filed.seconds / alone.seconds, target: 'none', holds: true });
    record('learning', `${row}, values in a file: memory`, filed.peak / 2 ** 20, 'MiB', { peer: 'in memory', peer_value: alone.peak / 2 ** 20, ratio: filed.peak / alone.peak, target: 'less than in memory', holds: filed.peak < alone.peak });
    if (all === 1) continue;
    const { seconds } = await run(all);
    const most = patience(all);
    record('learning', `${row}, ${all} threads`, seconds, 's', { peer: 'one thread', peer_value: alone.seconds, ratio: seconds / alone.seconds, target: `at most ${most} s`, holds: seconds <= most });
  }
}

/**
 * The seconds of a run on the page, and the most bytes that its engine had allocated.
 *
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {string} model
 * @param {string[]} samples
 * @param {{ threads: number, level: number }} how
 */
async function learned(browser, url, model, samples, { threads, level }) {
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
    await page.$eval('#document', (area, text) => (/** @type {HTMLTextAreaElement} */ (area).value = text), JSON.stringify(settings(level)));
    await page.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
    await page.waitForSelector('#run:not([aria-disabled])');
    const began = performance.now();
    await page.$eval('#run', (button) => /** @type {HTMLElement} */ (button).click());
    await page.waitForSelector('#learned');
    const seconds = (performance.now() - began) / 1000;
    const peak = await page.evaluate(async () => {
      const { start } = await import(/** @type {string} */ ('./www/state/session.js'));
      return (await (await start()).memory()).peak;
    });
    return { seconds, peak: Number(peak) };
  } finally {
    await context.close();
  }
}
