// Runs a compiled wasm test in a browser. `wasm-bindgen-test-runner` creates and serves the page.
// The browser is driven as in the page's tests, so no WebDriver program is needed.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { launch } from './browsers.mjs';

/** Time limit for all tests of a file. */
const limit = 300_000;

/**
 * Time limit until the first test ends. In Firefox under test control, one in twenty starts of a
 * thread pool never ends (www/engine.js says more), so a page that shows no test is loaded again once.
 */
const startup = 60_000;

/**
 * The runner's closing line: only `ok` with at least one passed test is a success.
 *
 * @param {string} output
 */
export function verdict(output) {
  const closing = /^test result: (\w+)\. (\d+) passed; (\d+) failed; .*$/m.exec(output);
  if (!closing) return { ok: false, why: 'the page ended without a result' };
  const [, word, passed, failed] = closing;
  if (word !== 'ok' || failed !== '0') return { ok: false, why: `${failed} failed` };
  if (passed === '0') return { ok: false, why: 'no test ran' };
  return { ok: true, why: `${passed} passed` };
}

/**
 * Serves the tests of a file until it is stopped.
 *
 * @param {string} file the `.wasm` that cargo made
 * @param {string} runner
 * @returns {Promise<{ url: string, stop: () => void }>}
 */
function served(file, runner) {
  const server = spawn(runner, [file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NO_HEADLESS: '1', WASM_BINDGEN_TEST_ADDRESS: '127.0.0.1:0' },
  });
  const stop = () => void server.kill();
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new Error(`${runner} did not start: ${error.message}`)));
    server.once('exit', (code) => reject(new Error(`${runner} ended with ${code} before it served the tests`)));
    createInterface({ input: server.stdout }).on('line', (line) => {
      const found = /available at (http:\S+)/.exec(line);
      if (found) resolve({ url: found[1], stop });
    });
  });
}

/**
 * Runs all tests of a file. `text` is the output of the runner's page and, after a failure, its
 * reason. A crash, a worker that does not load or a timeout is a failure.
 *
 * @param {string} file
 * @param {import('./browsers.mjs').Name} name
 * @param {{ runner?: string, patience?: number, begin?: number }} [options]
 */
export async function runTests(file, name, { runner = 'wasm-bindgen-test-runner', patience = limit, begin = startup } = {}) {
  const first = await attempt(file, name, runner, patience, begin);
  if (!first.stuck) return first;
  console.log(`${name}: no test ended within ${begin / 1000} s; one more try`);
  return attempt(file, name, runner, patience, begin);
}

/**
 * @param {string} file @param {import('./browsers.mjs').Name} name @param {string} runner
 * @param {number} patience @param {number} begin
 */
async function attempt(file, name, runner, patience, begin) {
  const { url, stop } = await served(file, runner);
  let output = '';
  /** @type {string[]} */
  const complaints = [];
  try {
    const browser = await launch(name);
    try {
      const page = await browser.newPage();
      page.on('pageerror', (error) => complaints.push(String(error)));
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
      const crashed = new Promise((_, reject) => {
        page.once('error', reject);
        browser.once('disconnected', () => reject(new Error(`${name} ended`)));
      });
      crashed.catch(() => {}); // It is raced below; after that a browser may end.
      await Promise.race([crashed, finished(page, url, Math.min(patience, begin), patience, (text) => (output = text))]);
    } finally {
      await browser.close().catch(() => {});
    }
  } catch (error) {
    complaints.push(String(error));
  } finally {
    stop();
  }
  const result = verdict(output);
  const stuck = !result.ok && complaints.some((text) => text.includes('no test ended'));
  return { ...result, stuck, text: [output.trim(), ...(result.ok ? [] : complaints)].join('\n') };
}

/**
 * Polls the page until it shows a result.
 *
 * @param {import('puppeteer-core').Page} page
 * @param {string} url
 * @param {number} begin milliseconds until the first test ends
 * @param {number} patience milliseconds for all
 * @param {(output: string) => void} heard
 */
async function finished(page, url, begin, patience, heard) {
  const [first, end] = [Date.now() + begin, Date.now() + patience];
  await page.goto(url);
  while (Date.now() < end) {
    const output = await page.evaluate(() => document.getElementById('output')?.textContent ?? '');
    heard(output);
    if (/^test result: /m.test(output)) return;
    if (/^Worker error: /m.test(output)) throw new Error('the worker of the tests could not be loaded');
    if (Date.now() > first && !/^test \S+ \.\.\. /m.test(output)) throw new Error(`no test ended within ${begin / 1000} s`);
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error(`no result within ${patience / 1000} s`);
}
