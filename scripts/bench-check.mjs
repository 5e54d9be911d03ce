// The page's check in onnxruntime-web: its times against those of a bare page with the same files and
// threads, and how long it looks for a damaged node. Rows for scripts/bench.mjs.

import { chosen } from './bench-architectures.mjs';
import { models as peers } from './bench-litert.mjs';
import { launch, onBlankPage, openModel } from './browsers.mjs';
import { median } from './median.mjs';
import { check, quantize } from './page-steps.mjs';
import { serve } from './serve.mjs';

/** @import { Page } from 'puppeteer-core' */
/** @typedef {import('./bench-models.mjs').Record_} Record_ */

const models = { lite0: peers.lite0, resnet18: peers.resnet18 };

/** Pages in turn with bare pages. */
const rounds = 3;

/** The most seconds of a check with the search of a node. */
const patience = 30;

/** The most that the page's times may differ from the bare page's. */
const tolerance = 0.05;

/** A row of the page's check. @typedef {{ float: number, quantized: number, threads: number, node: string | null }} Told */

/**
 * @param {string} benches folder of blank.html
 * @param {string} python that has numpy and onnx
 * @param {{ corpus: string, only: string[] }} options
 * @param {Record_} record
 */
export async function benchCheck(benches, python, { corpus, only }, record) {
  // The double of the runtime is that of the tests.
  const { doubled, quantizedNodes } = await import('../tests/e2e/real-runtime.mjs');
  for (const { model, source } of chosen(models, only, corpus, python)) {
    const { folder, damage } = doubled(`bench of ${model.file}`);
    const plain = await serve({ port: 0, mounts: { '/bench/': benches } });
    const wrong = await serve({ port: 0, mounts: { '/bench/': benches, '/pkg/': folder } });
    const browser = await launch('chromium', { patience: 600_000 });
    try {
      /** @type {Record<'float' | 'quantized', { page: number, bare: number }[]>} */
      const times = { float: [], quantized: [] };
      for (let round = 0; round < rounds; round += 1) {
        const page = await quantized(browser, plain.url, source);
        const { float, quantized: small, threads } = await checked(page);
        await page.close();
        const bare = await bareTimes(browser, plain.url, source, threads);
        times.float.push({ page: float, bare: bare[0] });
        times.quantized.push({ page: small, bare: bare[1] });
      }
      for (const [kind, all] of Object.entries(times)) {
        const ratio = median(all.map(({ page, bare }) => page / bare));
        record('check', `${model.name}, ${kind}: onnxruntime-web on the page`, median(all.map(({ page }) => page)), 'ms', {
          peer: 'a bare page', peer_value: median(all.map(({ bare }) => bare)), ratio, target: 'within 5 %', holds: Math.abs(ratio - 1) <= tolerance,
        });
      }
      const page = await quantized(browser, wrong.url, source);
      const nodes = quantizedNodes(await bytesOfResult(page));
      const node = nodes[nodes.length >> 1];
      damage({ node: node.name, operator: 'Mul', value: 0.5 });
      const began = performance.now();
      const { node: found } = await checked(page);
      const seconds = (performance.now() - began) / 1000;
      record('check', `${model.name}: check, and search of ${node.name}`, seconds, 's', { peer: null, ratio: null, target: `that node in at most ${patience} s`, holds: seconds <= patience && found === node.name });
      await page.close();
    } finally {
      await browser.close();
      await Promise.all([plain.close(), wrong.close()]);
    }
  }
}

/** A page with a quantized model, which is kept in the browser's storage, too. @param {import('puppeteer-core').Browser} browser @param {string} url @param {string} source */
async function quantized(browser, url, source) {
  const page = await browser.newPage();
  page.setDefaultTimeout(600_000);
  await openModel(page, url, [source]);
  await quantize(page);
  await page.evaluate(async () => {
    const address = '/www/state/page.js';
    const { done, model, samples, sampleSettings } = await import(address);
    const { files, refs } = samples.value;
    const [input] = await model.value.tensors(files.filter((/** @type {any} */ { path }) => refs[0].parts.includes(path)), sampleSettings());
    const folder = await navigator.storage.getDirectory();
    for (const [name, content] of [['bench-quantized', done.value.result.file], ['bench-input', input.data]]) {
      const out = await (await folder.getFileHandle(name, { create: true })).createWritable();
      await out.write(content);
      await out.close();
    }
  });
  return page;
}

/** The bytes of the page's result. @param {Page} page */
async function bytesOfResult(page) {
  const text = await page.evaluate(async () => {
    const file = await (await (await navigator.storage.getDirectory()).getFileHandle('bench-quantized')).getFile();
    const reader = new FileReader();
    await new Promise((next) => {
      reader.onload = next;
      reader.readAsDataURL(file);
    });
    return String(reader.result);
  });
  return Buffer.from(text.slice(text.indexOf(',') + 1), 'base64');
}

/** Checks the page's result. @param {Page} page @returns {Promise<Told>} */
async function checked(page) {
  const { failure, row, node } = await check(page);
  if (failure) throw new Error(failure);
  return { float: row.float?.times?.[0] ?? NaN, quantized: row.quantized?.times?.[0] ?? NaN, threads: row.threads, node };
}

/**
 * Medians of both models in onnxruntime-web on a page without Octet.
 *
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url
 * @param {string} source
 * @param {number} threads
 */
async function bareTimes(browser, url, source, threads) {
  const page = await browser.newPage();
  try {
    const input = await onBlankPage(page, url, source);
    const times = await page.evaluate(async (chosen, threads) => {
      const address = '/pkg/vendor/onnxruntime-web/ort.wasm.min.mjs';
      const ort = await import(address);
      ort.env.wasm.numThreads = threads;
      ort.env.wasm.wasmPaths = '/pkg/vendor/onnxruntime-web/';
      const kept = async (/** @type {string} */ name) => (await (await navigator.storage.getDirectory()).getFileHandle(name)).getFile();
      const sessions = [];
      for (const file of [/** @type {File} */ (chosen.files?.[0]), await kept('bench-quantized')]) sessions.push(await ort.InferenceSession.create(new Uint8Array(await file.arrayBuffer()), { executionProviders: ['wasm'] }));
      const [{ name, shape }] = sessions[0].inputMetadata;
      const sides = shape.map((/** @type {unknown} */ side) => (typeof side === 'number' && side > 0 ? side : 1));
      // The page's own sample: zeros and small numbers have other times.
      const data = new Float32Array(await (await kept('bench-input')).arrayBuffer());
      const feeds = { [name]: new ort.Tensor('float32', data, sides) };
      /** @type {number[][]} */
      const all = sessions.map(() => []);
      for (let run = -3; run < 15; run += 1) {
        for (const [at, session] of sessions.entries()) {
          const began = performance.now();
          await session.run(feeds);
          if (run >= 0) all[at].push(performance.now() - began);
        }
      }
      return all;
    }, input, threads);
    return times.map(median);
  } finally {
    await page.close();
  }
}
