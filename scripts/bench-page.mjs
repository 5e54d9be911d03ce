// Cost of the page for a visitor: time until it is usable, until the engine is ready, until a
// model's details are shown, until the first figures of a result, and the JavaScript.

import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { median } from './median.mjs';
import { chooseSamples } from './page-steps.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const rounds = 5;

/** @typedef {(bench: string, row: string, value: number, unit: string, judged: { target: string, holds: boolean }) => void} Record */

/**
 * A fresh browser context per run, so that no cache is warm.
 *
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {string} model a file of about 20 MB
 * @param {string[]} photos its samples
 * @param {Record} record
 */
export async function benchPage(browser, url, model, photos, record) {
  /** @type {{ usable: number, engine: number, opened: number, figures: number }[]} */
  const runs = [];
  /** Scripts until the engine was ready: of the page, and with those of its worker. @type {{ page: Set<string>, all: Set<string> }} */
  const asked = { page: new Set(), all: new Set() };
  for (let round = 0; round < rounds; round += 1) {
    const context = await browser.createBrowserContext();
    try {
      const page = await context.newPage();
      // The page's own clock, which starts with the navigation.
      await page.evaluateOnNewDocument(() => {
        const seen = /** @type {any} */ (window);
        const look = () => {
          // Usable: the drop area is shown, and the script listens for drops.
          if (!seen.usable && document.querySelector('#choose-model')) seen.usable = performance.now();
          if (!seen.engine && /^(Full|Baseline) build/.test(document.querySelectorAll('summary')[1]?.textContent ?? '')) seen.engine = performance.now();
          if (seen.asked && !seen.figures && document.querySelector('#verdict')) seen.figures = performance.now() - seen.asked;
          if (seen.began && !seen.opened && document.querySelector('#card-title')) seen.opened = performance.now() - seen.began;
        };
        new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
      });
      const note = (/** @type {import('puppeteer-core').HTTPRequest} */ request) => asked.all.add(new URL(request.url()).pathname);
      page.on('request', note);
      await page.goto(url);
      await page.waitForFunction(() => /** @type {any} */ (window).engine);
      page.off('request', note);
      const own = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname));
      own.forEach((path) => asked.page.add(path));
      const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.waitForSelector('input[data-pick=choose-model]'));
      await page.evaluate(() => document.querySelector('input[data-pick=choose-model]')?.addEventListener('change', () => (/** @type {any} */ (window).began = performance.now()), { capture: true }));
      await input.uploadFile(model);
      await page.waitForFunction(() => /** @type {any} */ (window).opened);
      await chooseSamples(page, photos);
      await page.waitForSelector('#run:not([aria-disabled])');
      await page.$eval('#run', (button) => {
        /** @type {any} */ (window).asked = performance.now();
        /** @type {HTMLElement} */ (button).click();
      });
      await page.waitForFunction(() => /** @type {any} */ (window).figures);
      runs.push(await page.evaluate(() => {
        const { usable, engine, opened, figures } = /** @type {any} */ (window);
        return { usable, engine, opened, figures };
      }));
    } finally {
      await context.close();
    }
  }
  const rows = /** @type {const} */ ([['usable', 'drop target works, cold cache', 1], ['engine', 'engine ready, cold cache', 2.5], ['opened', 'EfficientNet-Lite0, 19 MB, to its card', 2], ['figures', `${photos.length} photos, to the first figures of its result`, 5]]);
  for (const [key, row, limit] of rows) {
    const seconds = median(runs.map((run) => run[key])) / 1000;
    record('page', row, seconds, 's', { target: `under ${limit} s`, holds: seconds < limit });
  }
  const gzipped = (/** @type {string[]} */ files) => files.reduce((sum, file) => sum + gzipSync(readFileSync(join(checkout, file)), { level: 9 }).length, 0);
  const started = (/** @type {Set<string>} */ paths) => gzipped([...paths].map((path) => path.slice(1)).filter((file) => file.endsWith('.js')));
  record('page', 'JavaScript of the page at start, gzipped', started(asked.page) / 1000, 'kB', { target: 'under 150 kB', holds: started(asked.page) < 150_000 });
  record('page', 'with that of its worker', started(asked.all) / 1000, 'kB', { target: 'none', holds: true });
  record('page', 'all JavaScript, gzipped', gzipped(scripts()) / 1000, 'kB', { target: 'none: views load when they are opened', holds: true });
}

/** All scripts that the default build may load, without the type declarations. */
function scripts() {
  return ['www', 'pkg/threads', 'pkg/vendor'].flatMap((folder) =>
    readdirSync(join(checkout, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.js'))
      .map((file) => join(folder, file)));
}
