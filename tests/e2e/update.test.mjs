// A newer version arrives at the host while a run is under way: the service worker installs it, the
// run ends with its result, nothing is lost, and the page says what waits.

import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { staticHost } from './host.mjs';
import { launch, Visit } from './walk.mjs';

/** Puts a newer version on the host. @param {string} folder */
function update(folder) {
  appendFileSync(join(folder, 'www', 'main.js'), '\nglobalThis.newerVersion = true;\n');
  const list = join(folder, 'sw-files.js');
  const text = readFileSync(list, 'utf8');
  const changed = text.replace(/"version": "\w+"/, '"version": "newer"');
  assert.notEqual(changed, text);
  writeFileSync(list, changed);
}

for (const name of /** @type {const} */ (['chromium', 'firefox'])) {
  test(`a newer version that arrives in a run changes nothing until the tabs are closed, in ${name}`, async () => {
    const host = await staticHost(`update-${name}`);
    after(host.close);
    const browser = await launch(name);
    const open = async () => {
      const visit = new Visit();
      visit.server = host;
      visit.page = await browser.newPage();
      visit.tab.setDefaultTimeout(240_000);
      await visit.tab.setViewport({ width: 1280, height: 900 });
      return visit;
    };
    /** True if a tab is served the newer files. @param {Visit} visit */
    const isNewer = (visit) => visit.tab.evaluate(async () => (await (await fetch('www/main.js')).text()).includes('newerVersion'));
    try {
      const first = await open();
      await first.tab.goto(host.url);
      // The page reloads itself once.
      await first.tab.waitForFunction(() => crossOriginIsolated && navigator.serviceWorker.controller !== null);
      await first.tab.close();

      const visit = await open();
      await visit.load();
      await visit.ready(12);
      await visit.tab.select('#activations', 'i8');
      await visit.start();
      await visit.says('#progress-title', /Calibrating/);
      update(host.folder);
      await visit.tab.evaluate(async () => void (await (await navigator.serviceWorker.ready).update()));
      await visit.tab.waitForSelector('#newer:not([hidden])');
      await visit.finished();
      assert.match(await visit.text('#result-facts'), /12 samples/);
      assert.match(await visit.text('.log-lines'), /newer version of this page/);
      await visit.judged();
      assert.equal(await isNewer(visit), false);
      const model = await visit.downloaded('.onnx');
      await visit.tab.close();

      // The browser notices a moment later that the last tab is closed.
      let later = await open();
      for (await later.load(); !await isNewer(later); await later.load()) {
        await later.tab.close();
        await new Promise((next) => setTimeout(next, 500));
        later = await open();
      }
      await later.tab.waitForSelector('#restore');
      await later.tab.click('#restore');
      await later.tab.waitForSelector('#done-title');
      assert.match(await later.text('#left'), /12 samples/);
      assert.deepEqual(await later.downloaded('.onnx'), model);
      assert.equal(await later.tab.$eval('#newer', (line) => line.hasAttribute('hidden')), true);
      assert.equal(await later.tab.$eval('#activations', (select) => /** @type {HTMLSelectElement} */ (select).value), 'i8');
    } finally {
      await browser.close();
    }
  });
}
