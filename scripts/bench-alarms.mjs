// The page's check in onnxruntime-web over the corpus with nothing damaged: a node that it names is a
// false alarm. Rows for scripts/bench.mjs.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, openModel } from './browsers.mjs';
import { check, quantize } from './page-steps.mjs';
import { serve } from './serve.mjs';

/** @import { Page } from 'puppeteer-core' */
/** @typedef {import('./bench-models.mjs').Record_} Record_ */

/** Samples of each model. */
const count = 4;

/** The most milliseconds of one step of a model. */
const patience = 240_000;

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
      record('alarms', `${name}: ${said}`.slice(0, 120), (performance.now() - began) / 1000, 's', { target: 'agrees, but for rounding', holds: said === 'agrees' || said === 'rounding adds up' });
      await context.close();
    }
  } finally {
    await browser.close();
    await server.close();
  }
}

/** The page's errors, where a model gets no answer. @param {Page} page */
async function alerts(page) {
  const all = await page.$$eval('[role=alert], .callout.bad', (found) => found.map(({ textContent }) => textContent).join(' '));
  return `no answer, ${all || 'the time is over'}`;
}

/** @param {Awaited<ReturnType<typeof check>>} told */
function words({ failure, row, said, node }) {
  const error = failure || (row.quantized ? row.quantized.error : row.why);
  if (error) return `no answer, ${error}`;
  return { alike: 'agrees', rounded: 'rounding adds up', differs: `differs from ${node} on` }[said];
}
