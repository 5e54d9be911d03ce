// What the tests of the page share: a server, a stock browser, and a person's moves.

import assert from 'node:assert/strict';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { after, describe } from 'node:test';
import { launch as start } from '../../scripts/browsers.mjs';
import { serve } from '../../scripts/serve.mjs';

const cache = process.env.OCTET_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'octet');
export const corpus = process.env.OCTET_CORPUS ?? join(cache, 'corpus');
/** The folder that scripts/demo.mjs makes. */
export const demo = process.env.OCTET_DEMO ?? join(cache, 'demo');
/** Where downloaded models are left for the oracle. */
export const out = process.env.OCTET_E2E_OUT ?? join(cache, 'e2e');
mkdirSync(out, { recursive: true });
/** A folder for what the tests write, gone when they end. */
export const scratch = mkdtempSync(join(tmpdir(), 'octet-e2e-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
export const downloads = join(scratch, 'downloads');
mkdirSync(downloads);

export const model = join(corpus, 'models', 'efficientnet_lite0.onnx');
export const photos = existsSync(join(corpus, 'photos'))
  ? readdirSync(join(corpus, 'photos')).filter((name) => /\.jpg$/.test(name)).sort().map((name) => join(corpus, 'photos', name))
  : [];

/** That many photos: where there are fewer, the same ones again under other names. @param {number} count */
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
/** The built packages, but threads that never answer; made once. @returns {string} */
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

/** Runs in the page before its own scripts: a browser that knows no relaxed SIMD. */
export function withoutRelaxedSimd() {
  const validate = WebAssembly.validate;
  WebAssembly.validate = (source) => {
    const bytes = ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);
    const relaxed = bytes.some((byte, at) => byte === 0xfd && bytes[at + 1] === 0x80 && bytes[at + 2] === 0x02);
    return !relaxed && validate(source);
  };
}

/** @param {import('../../scripts/browsers.mjs').Name} name */
export const launch = (name) => start(name, { downloads });

/** One browser of each kind for all tests of a process: starting one takes seconds. @type {Map<string, import('puppeteer-core').Browser>} */
const started = new Map();
after(async () => {
  for (const browser of started.values()) await browser.close();
});

/** The browser that runs, or another where none does any more. @param {'chromium' | 'firefox'} name */
async function running(name) {
  const kept = started.get(name);
  if (kept?.connected) return kept;
  const browser = await launch(name);
  started.set(name, browser);
  return browser;
}

/** @typedef {{ plain?: boolean, demo?: string, mounts?: Record<string, string>, older?: boolean }} Options of server and browser */
/** @typedef {(options: Options, walk: (visit: Visit) => Promise<void>) => Promise<void>} Begin */

/**
 * The same tests in each browser. `visit` opens the page, walks it, and then holds it against what is promised of every walk: no
 * error in the console, nothing that the policy had to stop, no request to another origin.
 *
 * @param {string} what
 * @param {(visit: Begin, name: 'chromium' | 'firefox') => void} tests
 * @param {readonly ('chromium' | 'firefox')[]} [which]
 */
export function inBrowsers(what, tests, which = ['chromium', 'firefox']) {
  for (const name of which) {
    describe(`${what} in ${name}`, () => {
      tests(async (options, walk) => {
        const visit = await Visit.begin(await running(name), options);
        try {
          await walk(visit);
          assert.deepEqual(visit.errors, []);
          assert.deepEqual(visit.violations, [], 'the policy was violated');
          assert.deepEqual(visit.elsewhere(), [], 'a request left for another origin');
        } finally {
          await visit.end();
        }
      }, name);
    });
  }
}

/** A page on a server of its own, and everything it asked for. */
export class Visit {
  /** @type {string[]} */
  requests = [];
  /** @type {string[]} */
  errors = [];
  /** What the policy stopped, told by the browser itself: of the page, its workers and their threads. @type {Record<string, unknown>[]} */
  violations = [];

  /** @param {import('puppeteer-core').Browser} browser @param {Options} [options] */
  static async begin(browser, { older, ...options } = {}) {
    const visit = new Visit();
    visit.server = await serve({ port: 0, onViolation: (violation) => visit.violations.push(violation), ...options });
    visit.page = await browser.newPage();
    if (older) await visit.page.evaluateOnNewDocument(withoutRelaxedSimd);
    await visit.page.setViewport({ width: 1280, height: 900 });
    visit.page.setDefaultTimeout(120_000);
    // Requests of the worker and its threads are seen here too; blobs never leave the browser.
    visit.page.on('request', (request) => visit.requests.push(request.url()));
    visit.page.on('pageerror', (error) => visit.errors.push(String(error)));
    visit.page.on('console', (message) => message.type() === 'error' && visit.errors.push(message.text()));
    try {
      await visit.page.goto(visit.server.url);
      await visit.page.waitForFunction(() => /threads?$/.test(document.querySelectorAll('summary')[1]?.textContent ?? ''));
    } catch (error) {
      // A server left open would keep the whole run from ending.
      await visit.end();
      throw error;
    }
    return visit;
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

  /** Drops files made in the page, as from a desktop. @param {Record<string, Uint8Array | number[]>} files by name */
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

  /** Clicks a button by what it says. @param {string} text */
  press(text) {
    return this.tab.evaluate((wanted) => {
      const button = [...document.querySelectorAll('button')].find((one) => one.textContent === wanted && one.checkVisibility());
      if (!button) throw new Error(`No button says “${wanted}”.`);
      button.click();
    }, text);
  }

  /** Waits until an element says it. @param {string} selector @param {RegExp} words */
  async says(selector, words) {
    const found = (/** @type {string} */ where, /** @type {string} */ source, /** @type {string} */ flags) =>
      new RegExp(source, flags).test(document.querySelector(where)?.textContent ?? '');
    await this.tab.waitForFunction(found, {}, selector, words.source, words.flags);
  }

  /** Starts a run and waits for its end, which must be a good one. */
  async quantize() {
    await this.tab.click('#run');
    await this.finished();
  }

  /** Waits for the end of a run that is under way; what stopped it is the error. */
  async finished() {
    await this.tab.waitForSelector('#done-title, .problem');
    assert.equal(await this.tab.$eval('.problem .said', (said) => said.textContent).catch(() => null), null);
  }

  /** Opens a model of one input, chooses samples for it and quantizes. @param {Buffer} model @param {Buffer[]} samples `.npy` files */
  async quantized(model, samples) {
    const files = samples.map((_, index) => join(scratch, `sample${index}.npy`));
    files.forEach((file, index) => writeFileSync(file, samples[index] ?? ''));
    await this.drop({ 'small.onnx': model });
    await this.tab.waitForSelector('#card-title');
    await this.choose('choose-samples', ...files);
    await this.says('#run-why', /Your file is not changed/);
    await this.quantize();
  }

  /** The number of the result on the page. */
  shown() {
    return this.tab.$eval('.result', (result) => Number(/** @type {HTMLElement} */ (result).dataset.result));
  }

  /** Waits until the page shows the result of that number. @param {number} id */
  async shows(id) {
    await this.tab.waitForFunction((wanted) => /** @type {HTMLElement | null} */ (document.querySelector('.result'))?.dataset.result === String(wanted), {}, id);
  }

  /** That what was seen is kept: another setting is applied at once, and takes no samples. */
  async takesNoSamples() {
    const stages = await this.stages();
    const before = await this.shown();
    await this.tab.select('#activations', 'i8');
    await this.shows(before + 1);
    assert.equal(await this.tab.$eval('#changed', (said) => said.hasAttribute('hidden')), true);
    assert.doesNotMatch(await stages(), /Calibrating|Extra pass/);
  }

  /** Notes the stages of runs from here on; what it gives tells those so far. */
  async stages() {
    await this.tab.evaluate(() => {
      /** @type {any} */ (window).stages = new Set();
      const note = () => /** @type {any} */ (window).stages.add(document.querySelector('.foot-stage')?.textContent);
      new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
    });
    return () => this.tab.evaluate(() => [.../** @type {any} */ (window).stages].join('; '));
  }

  /** @param {string} selector */
  text(selector) {
    return this.tab.$eval(selector, (element) => element.textContent ?? '');
  }

  /** Follows a download link and waits for the file. @param {string} ending @returns {Promise<Buffer>} */
  async downloaded(ending) {
    const name = await this.tab.$$eval('a[download]', (links, wanted) => {
      const link = /** @type {HTMLAnchorElement[]} */ (links).find((one) => one.download.endsWith(wanted));
      link?.click();
      return link?.download ?? '';
    }, ending);
    return this.saved(name);
  }

  /** Waits for a file that is being downloaded, and takes it away. @param {string} name @returns {Promise<Buffer>} */
  async saved(name) {
    const file = join(downloads, name);
    for (let tries = 0; tries < 300; tries += 1) {
      // Both browsers write under another name first, or leave it empty until the end.
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
