// Memory of a conversion of gigabytes on the page: the engine's, and that of the browser's process.
// Rows for scripts/bench.mjs. The models are those of benches/large_model.py.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from './browsers.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const MiB = 2 ** 20;

/** Gigabytes of the model by browser. */
const sizes = { chromium: 6, firefox: 3 };

/** A number in a process's status; 0 once it has ended. @param {string} process @param {'PPid' | 'VmHWM'} field the parent, or the peak of resident memory in KiB */
function status(process, field) {
  try {
    const found = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(join('/proc', process, 'status'), 'utf8'));
    return Number(found?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** The peak of resident memory among the processes of pages below this one, in bytes. @param {number} root */
function peakOfPages(root) {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map(all.map((name) => [name, String(status(name, 'PPid'))]));
  const below = (/** @type {string} */ name) => {
    for (let at = parents.get(name); at && at !== '0'; at = parents.get(at)) if (at === String(root)) return true;
    return false;
  };
  const isPage = (/** @type {string} */ name) => {
    try {
      return /--type=renderer|-isForBrowser|\btab\b/.test(readFileSync(join('/proc', name, 'cmdline'), 'latin1').replaceAll('\0', ' '));
    } catch {
      return false;
    }
  };
  return Math.max(0, ...all.filter((name) => below(name) && isPage(name)).map((name) => 1024 * status(name, 'VmHWM')));
}

/**
 * Converts a model on the page, into the browser's storage.
 *
 * @param {import('./browsers.mjs').Name} name
 * @param {string} url
 * @param {string[]} files
 */
async function converted(name, url, files) {
  const browser = await launch(name, { patience: 1_800_000 });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(1_800_000);
    await page.goto(url);
    const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.waitForSelector('input[data-pick=choose-model]'));
    await input.uploadFile(...files);
    await page.waitForSelector('#large-facts');
    let [pages, process] = [0, 0];
    const began = performance.now();
    await page.click('#convert');
    for (;;) {
      const seen = await page.evaluate(() => {
        const fact = [...document.querySelectorAll('.facts.live dt')].find((term) => term.textContent === 'WebAssembly memory');
        return { memory: fact?.nextElementSibling?.textContent ?? '', done: document.querySelector('#large-done') !== null, failed: document.querySelector('.problem .message')?.textContent };
      });
      if (seen.failed) throw new Error(`${name}: ${seen.failed}`);
      const [, number, unit] = /([\d.]+) ([kMG])B/.exec(seen.memory) ?? [];
      if (number) pages = Math.max(pages, Number(number) * { k: 1e3, M: 1e6, G: 1e9 }[/** @type {'k' | 'M' | 'G'} */ (unit)]);
      process = Math.max(process, peakOfPages(browser.process()?.pid ?? 0));
      if (seen.done) break;
      await new Promise((next) => setTimeout(next, 500));
    }
    const seconds = (performance.now() - began) / 1000;
    // The files are removed from the browser's storage.
    await page.click('#discard');
    await page.waitForSelector('#convert');
    return { pages, process, seconds };
  } finally {
    await browser.close();
  }
}

/**
 * @param {string} url
 * @param {string} python
 * @param {string[]} only browsers, or all
 * @param {(bench: string, row: string, value: number, unit: string, judged: { target: string, holds: boolean }) => void} record
 */
export async function benchPieces(url, python, only, record) {
  for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
    if (only.length > 0 && !only.includes(name)) continue;
    const folder = mkdtempSync(join(process.env.OCTET_CACHE ?? '', 'large-'));
    try {
      const made = spawnSync(python, [join(checkout, 'benches', 'large_model.py'), `${sizes[name]}`, '--write', folder], { stdio: ['ignore', 'inherit', 'inherit'] });
      if (made.status !== 0) throw new Error('the model could not be written (above)');
      const files = readdirSync(folder).sort().map((file) => join(folder, file));
      const { pages, process: peak, seconds } = await converted(name, url, files);
      const row = `${sizes[name]} GB to q4 in ${name}`;
      record('pieces', `${row}: wasm memory`, pages / MiB, 'MiB', { target: 'at most 256', holds: pages <= 256 * MiB });
      record('pieces', `${row}: memory of the page's process`, peak / MiB, 'MiB', { target: 'at most 600', holds: peak <= 600 * MiB });
      record('pieces', `${row}: time`, seconds, 's', { target: 'none', holds: true });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}
