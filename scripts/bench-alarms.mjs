// The page's check in onnxruntime-web over the corpus with nothing damaged: a node that it names is a
// false alarm. Rows for scripts/bench.mjs.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, openModel } from './browsers.mjs';
import { serve } from './serve.mjs';

/** @import { Page } from 'puppeteer-core' */
/** @typedef {import('./bench-models.mjs').Record_} Record_ */

/** Samples of each model. */
const count = 4;

/** The most milliseconds of one step of a model. */
const patience = 240_000;

/** A check's answer. @typedef {{ error: string, apart: number, rounded: boolean, node: string | null }} Told */

/**
 * @param {{ corpus: string, only: string[] }} options
 * @param {Record_} record
 */
export async function benchAlarms({ corpus, only }, record) {
  const all = readdirSync(join(corpus, 'models')).filter((file) => file.endsWith('.onnx')).map((file) => file.slice(0, -5)).sort();
  const server = await serve({ port: 0 });
  const browser = await launch('chromium', { patience });
  try {
    for (const name of all.filter((name) => only.length === 0 || only.includes(name))) {
      const folder = join(corpus, 'samples', name);
      const samples = existsSync(folder) ? readdirSync(folder).filter((file) => !file.startsWith('.')).sort().slice(0, count).map((file) => join(folder, file)) : [];
      // A context of its own: a page keeps its last model.
      const context = await browser.createBrowserContext();
      const page = await context.newPage();
      page.setDefaultTimeout(patience);
      await openModel(page, server.url, [join(corpus, 'models', `${name}.onnx`)]);
      const began = performance.now();
      const said = await quantize(page, samples).then(() => check(page)).then(words).catch(() => alerts(page));
      record('alarms', `${name}: ${said}`.slice(0, 120), (performance.now() - began) / 1000, 's', { target: 'no node is named', holds: !said.startsWith('differs') });
      await context.close();
    }
  } finally {
    await browser.close();
    await server.close();
  }
}

/** Quantizes the model of a page. @param {Page} page @param {string[]} samples random ones if there are none */
async function quantize(page, samples) {
  await page.waitForSelector('#card-title');
  if (samples.length > 0) {
    const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.waitForSelector('input[data-pick=choose-samples]'));
    await input.uploadFile(...samples);
  } else {
    await press(page, '#random-samples:not([hidden]):not([disabled])');
  }
  await press(page, '#run:not([aria-disabled])');
  // The page measures its result first.
  await page.waitForSelector('[aria-labelledby=accuracy-title]:not(:has(#layers-pending)) table, #unmeasured-error');
}

/** @param {Page} page @param {string} selector */
async function press(page, selector) {
  await page.waitForSelector(selector);
  await page.$eval(selector, (button) => /** @type {HTMLElement} */ (button).click());
}

/** Checks the page's result. @param {Page} page @returns {Promise<Told>} */
async function check(page) {
  await press(page, '#tab-runtime');
  await page.waitForFunction(async () => {
    const address = '/www/features/runtime/state.js';
    return (await import(address)).blocked.value === '';
  }, { polling: 200 });
  await press(page, '#runtime-start');
  const told = await page.waitForFunction(async () => {
    const address = '/www/features/runtime/state.js';
    const { check, checking, failure } = await import(address);
    if (failure.value) return { error: failure.value, apart: 0, rounded: false, node: null };
    if (checking.value || !check.value?.whole) return null;
    const [{ quantized, why }] = check.value.rows;
    const apart = (quantized?.outputs ?? []).filter((/** @type {any} */ output) => output.parts);
    return {
      error: quantized ? quantized.error : why,
      apart: apart.length,
      rounded: apart.every((/** @type {any} */ output) => output.rounded),
      node: check.value.culprit?.found?.node ?? null,
    };
  }, { polling: 200 });
  return /** @type {Promise<Told>} */ (told.jsonValue());
}

/** The page's errors, where a model gets no answer. @param {Page} page */
async function alerts(page) {
  const all = await page.$$eval('[role=alert], .callout.bad', (found) => found.map(({ textContent }) => textContent).join(' '));
  return `no answer, ${all || 'the time is over'}`;
}

/** @param {Told} told */
function words({ error, apart, rounded, node }) {
  if (error) return `no answer, ${error}`;
  if (apart === 0) return 'agrees';
  return rounded ? 'rounding adds up' : `differs from ${node} on`;
}
