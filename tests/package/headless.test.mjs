// The example of docs/npm.md: a test in a headless browser, with Puppeteer, that quantizes a model
// and requires a quality.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch } from '../../scripts/browsers.mjs';
import { project, write } from './installed.mjs';
import { model } from './programs.mjs';
import { isolated, serveFolder } from './static.mjs';

/** @type {import('puppeteer-core').Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof serveFolder>>} */
let site;

before(async () => {
  write('exact.onnx', model);
  write('empty.html', '<!doctype html><meta charset="utf-8"><title>Test</title>');
  browser = await launch('chromium');
  site = await serveFolder(project(), isolated);
});
after(async () => {
  await browser?.close();
  await site?.close();
});

/** Runs in the page. Numbers and texts come back. */
async function quantized() {
  const address = '/node_modules/octet-onnx/dist/index.js';
  const { openModel, stopEngine } = await import(address);
  const bytes = new Uint8Array(await (await fetch('/exact.onnx')).arrayBuffer());
  const data = (/** @type {number} */ seed) => Float32Array.from({ length: 48 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1);
  const samples = [0, 1, 2, 3].map((seed) => ({ x: { shape: [1, 3, 4, 4], data: data(seed) } }));
  const opened = await openModel(bytes);
  const { model: int8, report } = await opened.quantize({}, samples);
  const comparison = await opened.compare(int8, samples);
  await stopEngine();
  return { sqnr: comparison.outputs[0].apart.sqnr, proof: report.includes('\nproof:') };
}

test('a headless page quantizes a model and tells its error', async () => {
  const page = await browser.newPage();
  await page.goto(`${site.url}/empty.html`);
  const { sqnr, proof } = await page.evaluate(quantized);
  assert.ok(sqnr > 20 && sqnr < 200, `${sqnr} dB`);
  assert.ok(proof, 'the report of the page has a proof');
  await page.close();
});
