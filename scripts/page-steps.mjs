// Steps of a person on the page, for benches: quantize a model, check the result in onnxruntime-web.

import { measured } from './browsers.mjs';

/** @import { Page } from 'puppeteer-core' */
/** @import { Row } from '../www/features/runtime/state.js' */

/** @param {Page} page @param {string} selector */
async function press(page, selector) {
  await page.waitForSelector(selector);
  await page.$eval(selector, (button) => /** @type {HTMLElement} */ (button).click());
}

/** Gives the page samples. @param {Page} page @param {string[]} samples paths */
export async function chooseSamples(page, samples) {
  const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.waitForSelector('input[data-pick=choose-samples]'));
  await input.uploadFile(...samples);
}

/** Quantizes the model of a page, which then measures the result. @param {Page} page @param {string[]} [samples] random ones if there are none */
export async function quantize(page, samples = []) {
  await page.waitForSelector('#card-title');
  if (samples.length > 0) {
    await chooseSamples(page, samples);
  } else {
    await press(page, '#random-samples:not([hidden]):not([disabled])');
  }
  await press(page, '#run:not([aria-disabled])');
  await page.waitForSelector(measured);
}

/** Checks the result with WASM. `node`: the one that differs. @param {Page} page @returns {Promise<{ failure: string, row: Row, said: 'alike' | 'rounded' | 'differs', node: string | null }>} */
export async function check(page) {
  await press(page, '#tab-runtime');
  await press(page, '#runtime-start:not([aria-disabled])');
  const told = await page.waitForFunction(async () => {
    const address = '/www/features/runtime/state.js';
    const { check, checking, failure, verdict } = await import(address);
    if (checking.value || !(failure.value || check.value?.whole)) return null;
    const row = check.value?.rows[0];
    return { failure: failure.value, row, said: verdict(row?.quantized), node: check.value?.culprit?.found?.node ?? null };
  }, { polling: 50 });
  return /** @type {any} */ (await told.jsonValue());
}
