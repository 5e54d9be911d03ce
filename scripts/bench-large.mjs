// A conversion of gigabytes on the page: memory of the engine and of the browser's process, and speed
// against a pump. Rows for scripts/bench.mjs. The models are those of benches/large_model.py.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, onBlankPage, openModel } from './browsers.mjs';

/** @import { Page } from 'puppeteer-core' */

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const MiB = 2 ** 20;

/** Rounds of pump and conversion in turn. The model was just written, so all read it from the system's memory. */
const rounds = 3;

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
 * Seconds of a pump: the same file, and so many bytes into the browser's storage.
 *
 * @param {Page} page
 * @param {string} url
 * @param {string} weights
 * @param {number} size
 */
async function pumped(page, url, weights, size) {
  const input = await onBlankPage(page, url, weights);
  return page.evaluate((chosen, size) => new Promise((/** @type {(seconds: number) => void} */ resolve, reject) => {
    const worker = new Worker(new URL('pump-worker.js', location.href), { type: 'module' });
    worker.onmessage = ({ data }) => (data.failed ? reject(new Error(data.failed)) : resolve(data.seconds));
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage({ file: chosen.files?.[0], size });
  }), input, size);
}

/**
 * Converts a model on the page, into the browser's storage.
 *
 * @param {Page} page
 * @param {string} url
 * @param {string[]} files
 * @param {() => number} peakOfProcess
 */
async function converted(page, url, files, peakOfProcess) {
  await openModel(page, url, files);
  await page.waitForSelector('#large-facts');
  let [memory, process] = [0, 0];
  const began = performance.now();
  await page.click('#convert');
  for (;;) {
    const seen = await page.evaluate(() => {
      const fact = [...document.querySelectorAll('.facts.live dt')].find((term) => term.textContent === 'WebAssembly memory');
      return { memory: fact?.nextElementSibling?.textContent ?? '', done: document.querySelector('#large-done') !== null, failed: document.querySelector('.problem .message')?.textContent };
    });
    if (seen.failed) throw new Error(seen.failed);
    const [, number, unit] = /([\d.]+) ([kMG])B/.exec(seen.memory) ?? [];
    if (number) memory = Math.max(memory, Number(number) * { k: 1e3, M: 1e6, G: 1e9 }[/** @type {'k' | 'M' | 'G'} */ (unit)]);
    process = Math.max(process, peakOfProcess());
    if (seen.done) break;
    await new Promise((next) => setTimeout(next, 100));
  }
  const seconds = (performance.now() - began) / 1000;
  const written = await page.evaluate(async () => {
    /** @param {FileSystemDirectoryHandle} folder @returns {Promise<number>} */
    const bytesIn = async (folder) => {
      let sum = 0;
      for await (const entry of folder.values()) sum += entry.kind === 'file' ? (await entry.getFile()).size : await bytesIn(entry);
      return sum;
    };
    return bytesIn(await navigator.storage.getDirectory());
  });
  // The files are removed from the browser's storage.
  await page.click('#discard');
  await page.waitForSelector('#convert');
  return { memory, process, seconds, written };
}

/**
 * A conversion and a pump, each in a browser of its own.
 *
 * @param {import('./browsers.mjs').Name} name
 * @param {string} url
 * @param {string[]} files
 */
async function roundOf(name, url, files) {
  /** @template T @param {(page: Page, root: number) => Promise<T>} work */
  const inBrowser = async (work) => {
    const browser = await launch(name, { patience: 1_800_000 });
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(1_800_000);
      return await work(page, browser.process()?.pid ?? 0);
    } finally {
      await browser.close();
    }
  };
  const weights = files.find((file) => file.endsWith('_data')) ?? '';
  const used = await inBrowser((page, root) => converted(page, url, files, () => peakOfPages(root)));
  const pump = await inBrowser((page) => pumped(page, url, weights, used.written));
  return { ...used, pump, speed: pump / used.seconds };
}

/**
 * @param {string} url
 * @param {string} python
 * @param {string[]} only browsers, or all; a number is the size of the model in gigabytes
 * @param {(bench: string, row: string, value: number, unit: string, judged: { target: string, holds: boolean, peer?: string, peer_value?: number, ratio?: number }) => void} record
 */
export async function benchPieces(url, python, only, record) {
  const asked = Number(only.find((word) => Number(word) > 0) ?? 0);
  const browsers = only.filter((word) => !Number(word));
  for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
    if (browsers.length > 0 && !browsers.includes(name)) continue;
    const gigabytes = asked || sizes[name];
    const folder = mkdtempSync(join(process.env.OCTET_CACHE ?? '', 'large-'));
    try {
      const made = spawnSync(python, [join(checkout, 'benches', 'large_model.py'), `${gigabytes}`, '--write', folder], { stdio: ['ignore', 'inherit', 'inherit'] });
      if (made.status !== 0) throw new Error('the model could not be written (above)');
      const files = readdirSync(folder).sort().map((file) => join(folder, file));
      /** @type {Awaited<ReturnType<typeof roundOf>>[]} */
      const all = [];
      for (let round = 0; round < rounds; round++) {
        all.push(await roundOf(name, url, files));
        console.error(`${name}: ${all[round].seconds.toFixed(1)} s, a pump ${all[round].pump.toFixed(1)} s`);
      }
      const { speed, seconds, pump } = all.toSorted((a, b) => a.speed - b.speed)[rounds >> 1];
      const most = (/** @type {'memory' | 'process'} */ what) => Math.max(...all.map((one) => one[what]));
      const row = `${gigabytes} GB to q4 in ${name}`;
      record('pieces', `${row}: wasm memory`, most('memory') / MiB, 'MiB', { target: 'at most 256', holds: most('memory') <= 256 * MiB });
      record('pieces', `${row}: memory of the page's process`, most('process') / MiB, 'MiB', { target: 'at most 600', holds: most('process') <= 600 * MiB });
      record('pieces', `${row}: time`, seconds, 's', { target: 'at least 0.8 of its speed', holds: speed >= 0.8, peer: 'a pump', peer_value: pump, ratio: speed });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}
