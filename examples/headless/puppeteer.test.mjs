// @ts-check
// The npm package in a page of a headless browser, with Puppeteer. `page.evaluate` is the same in
// Playwright. A failed assertion fails the CI job.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { model, samples, serve } from './site.mjs';

/** @type {Awaited<ReturnType<typeof serve>>} */
let site;
/** @type {import('puppeteer-core').Browser} */
let browser;

before(async () => {
  site = await serve();
  // A container runs as root, which the browser's own sandbox refuses.
  browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox'] });
});
after(async () => {
  await browser?.close();
  site?.close();
});

/**
 * Runs in the page: quantizes the model and compares it with the float model. Numbers and texts come
 * back.
 *
 * @param {string} model @param {string[]} samples addresses
 */
async function quantized(model, samples) {
  const address = '/octet-onnx/dist/index.js';
  /** @type {typeof import('../../packages/npm/src/index.js')} */
  const { openModel, stopEngine } = await import(address);
  const file = async (/** @type {string} */ path) => ({ path, blob: await (await fetch(path)).blob() });
  const files = await Promise.all(samples.map(file));
  const open = await openModel((await file(model)).blob);
  const { model: int8, report, summary } = await open.quantize({ scheme: 'static' }, files);
  const { outputs, verdict } = await open.compare(int8, files);
  await stopEngine();
  return { size: int8.length / summary.bytesBefore, outputs, decision: verdict?.decision, report };
}

test('the quantized model is small and answers as the float model does', async () => {
  const page = await browser.newPage();
  await page.goto(`${site.url}/empty.html`);
  const { size, outputs, decision, report } = await page.evaluate(quantized, model, samples);
  assert.ok(size < 0.5, `the file has ${(100 * size).toFixed(0)} % of the float model's bytes`);
  for (const { name, kind, top1, apart } of outputs) {
    if (kind === 'classes') assert.ok(top1 !== null && top1 >= 0.9, `${name}: ${top1} of the samples have the same top class`);
    else assert.ok(apart.sqnr > 20, `${name}: ${apart.sqnr} dB`);
  }
  assert.notEqual(decision, 'dont');
  assert.match(report, /^proof:/m);
  await page.close();
});
