// The browser of the benches and the server of their pages.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as kernels from './bench-kernels.mjs';
import * as litert from './bench-litert.mjs';
import * as models from './bench-models.mjs';
import { launch } from './browsers.mjs';
import { serve } from './serve.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** @typedef {{ ms: number, again: number, pages: number, peak: number, bytes: number, threads: number, opened: number, calibrated: number }} Run */

/** A variable that `make bench` sets. @param {string} name @returns {string} */
export function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: call this through \`make bench\``);
  return value;
}

/** A fresh page of our server in a browser for each run. */
export class Browser {
  /** @param {import('puppeteer-core').Browser} browser @param {{ url: string, close: () => Promise<void> }} server */
  constructor(browser, server) {
    this.browser = browser;
    this.server = server;
  }

  /** @param {boolean} [firefox] */
  static async start(firefox) {
    const cache = required('OCTET_CACHE');
    const mounts = { '/bench/': join(checkout, 'benches'), '/corpus/': required('OCTET_CORPUS'), [kernels.path]: kernels.folder(cache), [litert.path]: litert.folder(cache), ...models.mounts };
    const server = await serve({ port: 0, mounts });
    const browser = await launch(firefox ? 'firefox' : 'chromium', { patience: 600_000 });
    return new Browser(browser, server);
  }

  async close() {
    await this.browser.close();
    await this.server.close();
  }

  /**
   * Opens a model and, given samples, calibrates and quantizes it. The page has the files before
   * the clock starts, as after a drop; the engine was loaded two seconds before.
   *
   * @param {{ model: string, samples: string[], threads: number, method?: string }} job paths under /corpus/
   * @returns {Promise<Run>}
   */
  async run(job) {
    const page = await this.browser.newPage();
    try {
      await page.goto(`${this.server.url}bench/blank.html`);
      return await page.evaluate(async ({ model, samples, threads, method = 'minmax' }) => {
        /** @param {string} path */
        const blob = async (path) => {
          const answer = await fetch(`/corpus/${path}`);
          if (!answer.ok) throw new Error(`/corpus/${path}: ${answer.status}`);
          return answer.blob();
        };
        const address = '/www/octet.js';
        const { Octet } = await import(address);
        const octet = await Octet.start({ threads });
        // A user needs at least this long to find the file. Meanwhile the engine warms up.
        await new Promise((resolve) => setTimeout(resolve, 2000));
        const file = await blob(model);
        /** @type {Map<string, Blob>} */
        const known = new Map();
        for (const path of samples) if (!known.has(path)) known.set(path, await blob(path));
        const files = samples.map((path, index) => ({ path: `${String(index).padStart(4, '0')}.npz`, blob: known.get(path) }));

        const began = performance.now();
        const open = await octet.open(file, { name: model });
        const opened = performance.now() - began;
        let calibrated = opened;
        let bytes = 0;
        if (files.length > 0) {
          await open.calibrate(files, { method });
          calibrated = performance.now() - began;
          bytes = (await open.quantize({})).model.length;
        }
        const ms = performance.now() - began;
        let again = 0;
        if (files.length > 0) {
          const changed = performance.now();
          await open.quantize({ activations: { type: 'i8' } });
          again = performance.now() - changed;
        }
        const { pages, peak } = await octet.memory();
        const used = octet.threads;
        octet.close();
        return { ms, again, opened, calibrated, pages, peak, bytes, threads: used };
      }, job);
    } finally {
      await page.close();
    }
  }
}
