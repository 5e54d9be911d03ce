// Helpers for the tests of the page: a server, a stock browser, and user actions.

import assert from 'node:assert/strict';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { after, describe } from 'node:test';
import { launch as start, measured } from '../../scripts/browsers.mjs';
import { serve } from '../../scripts/serve.mjs';
import { scratch } from './scratch.mjs';
import { withoutRaces } from './without-races.mjs';

/** @import { Name } from '../../scripts/browsers.mjs' */

const cache = process.env.OCTET_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'octet');
export const corpus = process.env.OCTET_CORPUS ?? join(cache, 'corpus');
/** The folder that scripts/demo.mjs makes. */
export const demo = process.env.OCTET_DEMO ?? join(cache, 'demo');
/** Folder for downloaded models, which the oracle checks. */
export const out = process.env.OCTET_E2E_OUT ?? join(cache, 'e2e');
mkdirSync(out, { recursive: true });
export { scratch };
export const downloads = join(scratch, 'downloads');
mkdirSync(downloads);

export const model = join(corpus, 'models', 'efficientnet_lite0.onnx');
export const photos = existsSync(join(corpus, 'photos'))
  ? readdirSync(join(corpus, 'photos')).filter((name) => /\.jpg$/.test(name)).sort().map((name) => join(corpus, 'photos', name))
  : [];

/**
 * A number of photos; if there are fewer files, they repeat under other names.
 *
 * @param {number} count
 */
function pictures(count) {
  return Array.from({ length: count }, (_, index) => {
    const photo = photos[index % photos.length];
    if (index < photos.length) return photo;
    const copy = join(scratch, `${index}-${basename(photo)}`);
    if (!existsSync(copy)) copyFileSync(photo, copy);
    return copy;
  });
}

/** @type {string | undefined} */
let withSilentThreads;
/** The built packages with threads that never answer; created once. @returns {string} */
export const silentThreads = () => (withSilentThreads ??= silenced());

function silenced() {
  const built = resolve('pkg');
  const folder = join(scratch, 'silent');
  const inside = (/** @type {string} */ path) => join(folder, 'threads', path);
  cpSync(join(built, 'threads', 'snippets'), inside('snippets'), { recursive: true });
  for (const name of readdirSync(join(built, 'threads'))) {
    if (name !== 'snippets') symlinkSync(join(built, 'threads', name), inside(name));
  }
  const scripts = readdirSync(inside('snippets'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  assert.ok(scripts.length > 0);
  for (const name of scripts) {
    const script = readFileSync(inside(join('snippets', name)), 'utf8');
    const silent = script.replaceAll("waitForMsgType(self, 'wasm_bindgen_worker_init')", 'new Promise(() => {})');
    assert.notEqual(silent, script, `${name} is not as it was when this test was written`);
    writeFileSync(inside(join('snippets', name)), silent);
  }
  return folder;
}

/** Runs before the page's scripts: simulates a browser without relaxed SIMD. */
export function withoutRelaxedSimd() {
  const validate = WebAssembly.validate;
  WebAssembly.validate = (source) => {
    const bytes = ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);
    const relaxed = bytes.some((byte, at) => byte === 0xfd && bytes[at + 1] === 0x80 && bytes[at + 2] === 0x02);
    return !relaxed && validate(source);
  };
}

/** @param {Name} name */
export const launch = (name) => start(name, { downloads, patience: 300_000 });

/** One browser of each kind for all tests of a process: starting one takes seconds. @type {Map<string, import('puppeteer-core').Browser>} */
const started = new Map();
after(async () => {
  for (const browser of started.values()) await browser.close();
});

/** The running browser, or a new one. @param {Name} name */
async function running(name) {
  const kept = started.get(name);
  if (kept?.connected) return kept;
  const browser = await launch(name);
  started.set(name, browser);
  return browser;
}

/** @typedef {{ plain?: boolean, demo?: string, hub?: string, embedders?: string[], mounts?: Record<string, string>, older?: boolean }} Options of server and browser */
/** @typedef {(options: Options, walk: (visit: Visit) => Promise<void>) => Promise<void>} Begin */

/**
 * Runs the tests in each browser. `visit` opens the page, runs a scenario and checks the general
 * promises: no console error, no policy violation, no request to another origin.
 *
 * @template {Name} [N='chromium' | 'firefox']
 * @param {string} what
 * @param {(visit: Begin, name: N) => void} tests
 * @param {readonly N[]} [which]
 */
export function inBrowsers(what, tests, which = /** @type {readonly any[]} */ (['chromium', 'firefox'])) {
  for (const name of which) {
    describe(`${what} in ${name}`, () => {
      tests(async (options, walk) => {
        const visit = await Visit.begin(await running(name), options);
        try {
          await walk(visit);
          assert.deepEqual(visit.errors, []);
          assert.deepEqual(visit.violations, [], 'the policy was violated');
          assert.deepEqual(visit.elsewhere(), [], 'a request left for another origin');
        } catch (error) {
          console.error(`The page in ${name}, when the test failed:\n${await visit.seen()}`);
          throw error;
        } finally {
          await visit.end();
        }
      }, name);
    });
  }
}

/** A page with its own server, and all of its requests. */
export class Visit {
  /** @type {string[]} */
  requests = [];
  /** @type {string[]} */
  errors = [];
  /**
   * Policy violations as reported by the browser, from the page, its workers and their threads.
   *
   * @type {Record<string, unknown>[]}
   */
  violations = [];

  /** @param {import('puppeteer-core').Browser} browser @param {Options} [options] */
  static async begin(browser, { older, ...options } = {}) {
    const visit = new Visit();
    visit.server = await serve({ port: 0, onViolation: (violation) => visit.violations.push(violation), ...options });
    visit.page = await browser.newPage();
    if (older) await visit.page.evaluateOnNewDocument(withoutRelaxedSimd);
    await visit.page.setViewport({ width: 1280, height: 900 });
    visit.page.setDefaultTimeout(240_000);
    withoutRaces(visit.page);
    // This includes requests of the worker and its threads; blobs never leave the browser.
    visit.page.on('request', (request) => visit.requests.push(request.url()));
    visit.page.on('pageerror', (error) => visit.errors.push(String(error)));
    visit.page.on('console', (message) => message.type() === 'error' && visit.errors.push(message.text()));
    try {
      await visit.load();
    } catch (error) {
      // An open server would keep the process from ending.
      await visit.end();
      throw error;
    }
    return visit;
  }

  /** Loads the page anew and waits until its engine runs. @param {string} [rest] of the address */
  async load(rest = '') {
    // From another page: else an address that differs only in its hash loads nothing.
    await this.tab.goto('about:blank');
    await this.tab.goto(`${this.server?.url}${rest}`);
    await this.tab.waitForFunction(() => /threads?$/.test(document.querySelectorAll('summary')[1]?.textContent ?? ''));
  }

  elsewhere() {
    return this.requests.filter((url) => ![this.server?.url ?? '', 'blob:', 'data:'].some((start) => url.startsWith(start)));
  }

  /** @returns {import('puppeteer-core').Page} */
  get tab() {
    if (!this.page) throw new Error('The visit has not begun.');
    return this.page;
  }

  /** @param {string} id @param {...string} files */
  async choose(id, ...files) {
    const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await this.tab.waitForSelector(`input[data-pick=${id}]`));
    await input.uploadFile(...files);
  }

  /**
   * Drops files, as from a desktop.
   *
   * @param {Record<string, Uint8Array | number[]>} files by name
   */
  drop(files) {
    return this.tab.evaluate((given) => {
      const transfer = new DataTransfer();
      for (const { name, bytes } of given) transfer.items.add(new File([new Uint8Array(bytes)], name));
      window.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, Object.entries(files).map(([name, bytes]) => ({ name, bytes: [...bytes] })));
  }

  /** Opens the model and adds samples. @param {number} count */
  async ready(count) {
    await this.choose('choose-model', model);
    await this.tab.waitForSelector('#card-title');
    await this.choose('choose-samples', ...pictures(count));
    await this.tab.waitForSelector('.pictures canvas');
    await this.tab.select('#preset', 'lite');
  }

  /** Clicks a button by its text. @param {string} text */
  press(text) {
    return this.tab.evaluate((wanted) => {
      const button = [...document.querySelectorAll('button')].find((one) => one.textContent === wanted && one.checkVisibility());
      if (!button) throw new Error(`No button says “${wanted}”.`);
      button.click();
    }, text);
  }

  /** Waits until an element contains a text. @param {string} selector @param {RegExp} words */
  async says(selector, words) {
    const found = (/** @type {string} */ where, /** @type {string} */ source, /** @type {string} */ flags) =>
      new RegExp(source, flags).test(document.querySelector(where)?.textContent ?? '');
    await this.tab.waitForFunction(found, {}, selector, words.source, words.flags);
  }

  /** Starts a run as soon as the page allows one. */
  async start() {
    await this.tab.waitForSelector('#run:not([aria-disabled])');
    await this.tab.click('#run');
  }

  /** Starts a run and waits for its successful end. */
  async quantize() {
    await this.start();
    await this.finished();
  }

  /** Waits for the end of the current run; a failure is an error. */
  async finished() {
    await this.tab.waitForSelector('#done-title, .problem');
    assert.equal(await this.tab.$eval('.problem .message', (said) => said.textContent).catch(() => null), null);
  }

  /** Waits until the error of the result is measured, which happens after each run. */
  async judged() {
    await this.tab.waitForSelector(measured);
  }

  /** Measures the time as well, after the error. */
  async measureBoth() {
    await this.judged();
    await this.tab.waitForSelector('#measure-both:not([disabled])');
    await this.tab.$eval('#measure-both', (button) => /** @type {HTMLElement} */ (button).click());
  }

  /**
   * Opens a model with one input, adds samples and quantizes it.
   *
   * @param {Buffer} model
   * @param {Buffer[]} samples `.npy` files
   */
  async quantized(model, samples) {
    const files = samples.map((_, index) => join(scratch, `sample${index}.npy`));
    files.forEach((file, index) => writeFileSync(file, samples[index] ?? ''));
    await this.drop({ 'small.onnx': model });
    await this.tab.waitForSelector('#card-title');
    await this.choose('choose-samples', ...files);
    await this.says('#run-why', /Your file is not changed/);
    await this.quantize();
  }

  /** The id of the result on the page. */
  shown() {
    return this.tab.$eval('.result', (result) => Number(/** @type {HTMLElement} */ (result).dataset.result));
  }

  /** Waits until the page shows the result with that id. @param {number} id */
  async shows(id) {
    await this.tab.waitForFunction((wanted) => /** @type {HTMLElement | null} */ (document.querySelector('.result'))?.dataset.result === String(wanted), {}, id);
  }

  /**
   * Checks that the calibration is kept: another setting is applied at once, without running
   * samples.
   */
  async takesNoSamples() {
    const stages = await this.stages();
    const before = await this.shown();
    await this.tab.select('#activations', 'i8');
    await this.shows(before + 1);
    assert.equal(await this.tab.$eval('#changed', (said) => said.hasAttribute('hidden')), true);
    assert.doesNotMatch(await stages(), /Calibrating|Extra pass/);
  }

  /** Records the stages of runs from now on; the returned function gives those so far. */
  async stages() {
    await this.tab.evaluate(() => {
      /** @type {any} */ (window).stages = new Set();
      const note = () => /** @type {any} */ (window).stages.add(document.querySelector('.status-stage')?.textContent);
      new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
    });
    return () => this.tab.evaluate(() => [.../** @type {any} */ (window).stages].join('; '));
  }

  /**
   * Waits until the browser has stored what the page gave it, as a later transaction comes after it.
   *
   * @param {import('puppeteer-core').Page} [tab]
   * @returns {Promise<string[]>} names of what is stored
   */
  async stored(tab = this.tab) {
    return tab.evaluate(() => new Promise((resolve, reject) => {
      const opening = indexedDB.open('octet');
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        const transaction = opening.result.transaction('kept', 'readwrite');
        const keys = transaction.objectStore('kept').getAllKeys();
        transaction.onabort = () => reject(transaction.error);
        transaction.oncomplete = () => {
          opening.result.close();
          resolve(keys.result.map(String));
        };
      };
    }));
  }

  /** The text of the page, for the log of a failed test; each line once. */
  async seen() {
    const text = await this.tab.evaluate(() => document.body.innerText).catch(String);
    const lines = new Set(text.split('\n').map((line) => line.trim()).filter(Boolean));
    return [...lines, ...this.errors].map((line) => `    ${line.slice(0, 160)}`).slice(0, 80).join('\n');
  }

  /** @param {string} selector */
  text(selector) {
    return this.tab.$eval(selector, (element) => element.textContent ?? '');
  }

  /** Follows a download link and waits for the file. @param {string} ending @returns {Promise<Buffer>} */
  async downloaded(ending) {
    const press = () => this.tab.$$eval('a[download]', (links, wanted) => {
      const link = /** @type {HTMLAnchorElement[]} */ (links).find((one) => one.download.endsWith(wanted));
      link?.click();
      return link?.download ?? '';
    }, ending);
    // Chromium drops one of many downloads now and then; its user presses again.
    return this.saved(await press(), 10_000).catch(async () => this.saved(await press()));
  }

  /** Waits for a download and removes the file. @param {string} name @param {number} [patience] in milliseconds @returns {Promise<Buffer>} */
  async saved(name, patience = 30_000) {
    const file = join(downloads, name);
    for (const end = Date.now() + patience; Date.now() < end;) {
      // Both browsers write to another name first, or leave the file empty until the end.
      const whole = existsSync(file) && statSync(file).size > 0 && !existsSync(`${file}.part`);
      if (whole) {
        const bytes = readFileSync(file);
        rmSync(file);
        return bytes;
      }
      await new Promise((next) => setTimeout(next, 100));
    }
    throw new Error(`${name} was not downloaded.`);
  }

  async end() {
    await this.page?.close();
    await this.server?.close();
  }

  /** @type {Awaited<ReturnType<typeof serve>> | undefined} */
  server;
  /** @type {import('puppeteer-core').Page | undefined} */
  page;
}
