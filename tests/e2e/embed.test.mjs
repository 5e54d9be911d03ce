// The gallery of examples/: three studios on a page, each `<octet-studio>` in a frame. One compiled
// wasm serves all; commands, events and refusals pass by the protocol of docs/embedding.md.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { serveGallery } from '../../examples/gallery/serve.mjs';
import { serve } from '../../scripts/serve.mjs';
import { convolution } from './model.mjs';
import { launch } from './walk.mjs';

const axe = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
  describe(`the gallery in ${name}`, () => {
    /** @type {import('puppeteer-core').Browser} */
    let browser;
    /** @type {Awaited<ReturnType<typeof serveGallery>>} */
    let site;
    before(async () => {
      browser = await launch(name);
      site = await serveGallery(0);
    });
    after(async () => {
      await browser?.close();
      site?.close();
    });

    test('three studios share one load and one compiled wasm, and each runs by itself', async () => {
      const page = await browser.newPage();
      page.setDefaultTimeout(240_000);
      await page.setViewport({ width: 1280, height: 900 });
      /** @type {string[]} */
      const requests = [];
      page.on('request', (request) => requests.push(request.url()));
      await page.goto(site.url);
      const quantized = (/** @type {string} */ id, /** @type {object | undefined} */ settings) => page.evaluate(async (which, document_) => {
        await customElements.whenDefined('octet-studio');
        const studio = /** @type {import('../../www/element.js').OctetStudioElement} */ (document.querySelector(which));
        /** @type {string[]} */
        const heard = [];
        for (const event of ['octet-progress', 'octet-result', 'octet-error']) studio.addEventListener(event, () => heard.push(event));
        const told = await studio.quantize(document_);
        const result = await studio.result();
        return { name: told.name, settings: told.settings, bytes: [...(result?.bytes ?? [])], after: told.bytesAfter, report: /Calibration Start/.test(result?.report ?? ''), heard: [...new Set(heard)].sort() };
      }, id, settings);
      const all = await Promise.all([quantized('#whole', { method: 'minmax', activations: { type: 'i8' } }), quantized('#demonstration', undefined)]);
      await page.click('#start');
      await page.waitForFunction(() => /bytes became/.test(document.querySelector('#outcome')?.textContent ?? ''));
      assert.match(await page.$eval('#outcome', (said) => said.textContent ?? ''), /^\d+ bytes became \d+: small_int8\.onnx\.$/);
      for (const one of all) {
        assert.equal(one.name, 'small_int8.onnx');
        assert.equal(one.bytes.length, one.after);
        assert.ok(one.bytes.length > 300 && one.report);
        assert.deepEqual(one.heard, ['octet-progress', 'octet-result']);
      }
      // Equal files and settings, given by an attribute and by a call.
      assert.deepEqual(all[0].settings, all[1].settings);
      assert.deepEqual(all[0].bytes, all[1].bytes);
      const wasm = requests.filter((url) => url.endsWith('.wasm'));
      assert.equal(wasm.length, 1, wasm.join(', '));
      const shared = await page.evaluate(async () => {
        const windows = [...document.querySelectorAll('octet-studio')].map((studio) => studio.querySelector('iframe')?.contentWindow);
        const modules = await Promise.all(windows.map((one) => /** @type {any} */ (one)[Symbol.for('octet compiled wasm')].threads));
        return modules.length === 3 && modules.every((module) => module === modules[0]);
      });
      assert.ok(shared, 'the three studios hold the same module');
      await page.close();
    });

    test('panels and read-only are as the attributes say, then and later', async () => {
      const page = await browser.newPage();
      page.setDefaultTimeout(240_000);
      await page.goto(site.url);
      /** The panels and colours of a studio. @param {string} id @param {string} ready a selector that must be there */
      const shows = async (id, ready) => {
        await page.waitForFunction((which, wanted) => document.querySelector(which)?.querySelector('iframe')?.contentDocument?.querySelector(wanted), {}, id, ready);
        return page.evaluate((which) => {
          const inside = /** @type {Document} */ (document.querySelector(which)?.querySelector('iframe')?.contentDocument);
          return {
            tabs: [...inside.querySelectorAll('[role=tab]')].map((tab) => tab.id.slice(4)), run: Boolean(inside.querySelector('#run')), data: Boolean(inside.querySelector('#data-title')),
            open: Boolean(inside.querySelector('#choose-model:enabled')), header: Boolean(inside.querySelector('octet-header')), told: inside.querySelector('#embedder')?.textContent ?? '',
            button: getComputedStyle(/** @type {Element} */ (inside.querySelector('button'))).backgroundColor, font: getComputedStyle(inside.body).fontFamily,
          };
        }, id);
      };
      const whole = await shows('#whole', '#card-title');
      assert.ok(whole.tabs.length > 5 && whole.run && whole.data && whole.open);
      const shown = await shows('#demonstration', '#card-title');
      assert.deepEqual({ tabs: shown.tabs, run: shown.run, data: shown.data, open: shown.open, header: shown.header }, { tabs: ['overview', 'layers'], run: true, data: false, open: false, header: false });
      assert.match(shown.told, /page around can read the result/);
      // The style of the page stays outside.
      assert.notEqual(shown.button, 'rgb(102, 51, 153)');
      assert.doesNotMatch(shown.font, /Georgia/);
      const frame = page.frames().find((one) => one.url().includes('readonly'));
      assert.ok(frame);
      // Not through the policy of the page, which forbids foreign scripts.
      await frame.evaluate(axe);
      const violations = await frame.evaluate(async () => {
        const found = await /** @type {any} */ (window).axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] });
        return found.violations.map((/** @type {{ id: string, nodes: { target: string[] }[] }} */ { id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(', ')}`);
      });
      assert.deepEqual(violations, []);
      // After a run, what would change the settings is disabled: each layer's buttons, and what the verdict proposes.
      await page.$eval('#demonstration', (studio) => /** @type {import('../../www/element.js').OctetStudioElement} */ (studio).quantize());
      /** The buttons of layers, and those of them that are enabled. */
      const changing = () => frame.evaluate(async () => {
        /** @type {HTMLElement} */ (document.querySelector('#tab-layers')).click();
        while (!document.querySelector('td.acts button')) await new Promise((next) => setTimeout(next, 50));
        const all = [.../** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll('td.acts :is(button, select), #next-step, .run-history button'))];
        return { all: all.length, enabled: all.filter((one) => !one.disabled).map((one) => one.textContent) };
      });
      const locked = await changing();
      assert.ok(locked.all > 1);
      assert.deepEqual(locked.enabled, []);
      await page.$eval('#demonstration', (studio) => studio.removeAttribute('readonly'));
      assert.ok((await changing()).enabled.length > 0);
      await page.$eval('#demonstration', (studio) => {
        studio.setAttribute('panels', 'model, data, graph');
      });
      const changed = await shows('#demonstration', '#tab-graph');
      assert.deepEqual({ tabs: changed.tabs, run: changed.run, data: changed.data, open: changed.open }, { tabs: ['graph'], run: false, data: true, open: true });
      await page.close();
    });

    test('what fails is told by the event and by the call', async () => {
      const page = await browser.newPage();
      page.setDefaultTimeout(240_000);
      await page.goto(site.url);
      const said = await page.evaluate(async () => {
        await customElements.whenDefined('octet-studio');
        const studio = /** @type {import('../../www/element.js').OctetStudioElement} */ (document.querySelector('#driven'));
        /** @type {any[]} */
        const heard = [];
        studio.addEventListener('octet-error', (event) => heard.push(/** @type {CustomEvent} */ (event).detail));
        const failure = (/** @type {Promise<unknown>} */ call) => call.then(() => 'no failure', (error) => error.message);
        const empty = await failure(studio.quantize());
        const damaged = await failure(studio.open(new Uint8Array(9)));
        studio.setAttribute('model', 'https://elsewhere.invalid/m.onnx');
        while (!heard.some(({ message }) => /own origin only/.test(message))) await new Promise((next) => setTimeout(next, 50));
        return { empty, damaged, title: heard[0].title };
      });
      assert.match(said.empty, /Open a model first/);
      assert.match(said.damaged, /model\.onnx could not be opened\. /);
      assert.match(said.title, /could not be opened/);
      await page.close();
    });

    test('a call waits for the files of attributes that were set before it', async () => {
      const page = await browser.newPage();
      page.setDefaultTimeout(240_000);
      await page.goto(site.url);
      const name = await page.evaluate(async () => {
        await customElements.whenDefined('octet-studio');
        const studio = /** @type {import('../../www/element.js').OctetStudioElement} */ (document.querySelector('#driven'));
        studio.setAttribute('samples', 'models/samples.zip');
        studio.setAttribute('model', 'models/small.onnx');
        return (await studio.quantize()).name;
      });
      assert.equal(name, 'small_int8.onnx');
      await page.close();
    });

    test('a page of another origin controls the studio only if the host names it', async () => {
      // The page around has the element's script from its own origin, and no isolation.
      const outside = createServer((request, response) => {
        const script = request.url === '/element.js';
        response.writeHead(200, { 'Content-Type': script ? 'text/javascript' : 'text/html' }).end(script ? readFileSync('www/element.js') : '<!doctype html><title>outside</title><script type="module" src="/element.js"></script>');
      });
      await new Promise((listening) => outside.listen(0, '127.0.0.1', () => listening(undefined)));
      const origin = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (outside.address()).port}`;
      const studio = await serve({ port: 0, embedders: [origin] });
      const sealed = await serve({ port: 0 });
      const page = await browser.newPage();
      page.setDefaultTimeout(240_000);
      try {
        await page.goto(origin);
        /** Opens a model in a studio of another origin. @param {string} src @param {boolean} waits until it answers */
        const opened = (src, waits) => page.evaluate(async (address, wait, model) => {
          await customElements.whenDefined('octet-studio');
          const element = /** @type {import('../../www/element.js').OctetStudioElement} */ (document.createElement('octet-studio'));
          element.setAttribute('src', address);
          document.body.append(element);
          const answer = element.open({ path: 'small.onnx', blob: new Blob([new Uint8Array(model)]) }).then(() => 'open', (error) => error.message);
          const silence = new Promise((next) => setTimeout(() => next('silent'), 4000));
          const said = await (wait ? answer : Promise.race([answer, silence]));
          element.remove();
          return said;
        }, src, waits, [...convolution()]);
        assert.equal(await opened(`${studio.url}embed.html`, true), 'open');
        // Its header forbids the frame, so it says nothing at all; and the main page is never framed.
        assert.match(String(await opened(`${sealed.url}embed.html`, true)), /does not answer.*its host allows pages of/);
        assert.equal(await opened(`${studio.url}index.html`, false), 'silent');
        // A host that sends no headers can't forbid the frame; then the studio itself refuses.
        assert.match(String(await opened(`${site.url}octet/embed.html`, true)), /may not be controlled by http:\/\/127\.0\.0\.1.*Its host allows that/);
      } finally {
        await page.close();
        await Promise.all([studio.close(), sealed.close()]);
        outside.close();
        outside.closeAllConnections();
      }
    });
  });
}
