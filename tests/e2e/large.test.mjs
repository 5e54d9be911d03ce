// Models that are converted piece by piece: the bytes of the command line, stop, reload and resume,
// missing data, a lack of room.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { dense, tied } from './model.mjs';
import { inBrowsers, scratch } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

const folder = join(scratch, 'large');
mkdirSync(folder, { recursive: true });
const inside = dense({ layers: 16, side: 512 });
const beside = dense({ layers: 4, side: 512, external: true });
writeFileSync(join(folder, 'inside.onnx'), inside.model);
writeFileSync(join(folder, 'beside.onnx'), beside.model);
writeFileSync(join(folder, 'weights.bin'), beside.weights);
writeFileSync(join(folder, 'tied.onnx'), tied(4000));

/**
 * The files that the command line makes, by name.
 *
 * @param {string} model @param {string} out @param {...string} options
 */
function byCommand(model, out, ...options) {
  const target = join(folder, `command-${out}`);
  mkdirSync(target, { recursive: true });
  execFileSync(process.env.OCTET ?? '', ['quantize', join(folder, model), ...(options.includes('--scheme') ? [] : ['--scheme', 'blocks']), '--stream', '--data-size', '1', '--out', join(target, out), ...options], { stdio: 'pipe' });
  return Object.fromEntries(readdirSync(target).sort().map((name) => [name, readFileSync(join(target, name))]));
}

/** Loads the page so that it converts every model piece by piece, as with `--data-size 1`. @param {Visit} visit */
const inPieces = (visit) => visit.load('?pieces=1');

/** Changes settings and waits for their plan. @param {Visit} visit @param {() => Promise<unknown>} change */
async function planned({ tab }, change) {
  await tab.$eval('#large-facts', (facts) => (facts.id = 'former-facts'));
  await change();
  await tab.waitForSelector('#large-facts');
}

/** Chooses an option and waits for the plan. @param {Visit} visit @param {string} field @param {string} value */
const chosen = (visit, field, value) => planned(visit, () => visit.tab.select(field, value));

/** Opens a model and waits for its plan. @param {Visit} visit @param {...string} names */
async function opened(visit, ...names) {
  await visit.choose('choose-model', ...names.map((name) => join(folder, name)));
  await visit.tab.waitForSelector('#large-facts, #large-done', { visible: true });
}

/** Waits for the end of the conversion; a failure is an error. @param {Visit} visit */
async function converted({ tab }) {
  await tab.waitForSelector('#large-done, .problem');
  assert.equal(await tab.$eval('.problem .message', (said) => said.textContent).catch(() => null), null);
}

/** Downloads all files and compares them. @param {Visit} visit @param {Record<string, Buffer>} wanted */
async function same(visit, wanted) {
  const names = await visit.tab.$$eval('.files a[download]', (links) => links.map((link) => /** @type {HTMLAnchorElement} */ (link).download));
  assert.deepEqual(names.sort(), Object.keys(wanted));
  for (const [name, bytes] of Object.entries(wanted)) assert.ok((await visit.downloaded(name)).equals(bytes), name);
}

/** Removes what this browser keeps. @param {Visit} visit */
async function emptied({ tab }) {
  await tab.click('#discard');
  await tab.waitForSelector('#convert');
}

inBrowsers('a model in pieces', (visit, browser) => {
  test('has the bytes of the command line, in several files', () => visit({}, async (visit) => {
    await inPieces(visit);
    await opened(visit, 'inside.onnx');
    await visit.tab.waitForSelector('#convert');
    assert.match(await visit.text('#large-facts'), /Size.*16 %.*Files of weights3Time.*about.*Memory.*MB.*16 of 16 operators/s);
    await visit.tab.click('#convert');
    await converted(visit);
    const reported = join(folder, 'command.yaml');
    const wanted = byCommand('inside.onnx', 'inside_q4.onnx', '--report', reported);
    assert.deepEqual(Object.keys(wanted), ['inside_q4.onnx', 'inside_q4.onnx_data', 'inside_q4.onnx_data_1', 'inside_q4.onnx_data_2']);
    await same(visit, wanted);
    // The report is that of the command line, but for times and the machine.
    const results = (/** @type {Buffer | string} */ text) => String(text).split(/\n(?=model:)/)[1];
    assert.match(results(readFileSync(reported)), /quantization:.*tensors:/s);
    assert.equal(results(await visit.downloaded('inside_q4.yaml')), results(readFileSync(reported)));
    assert.match(await visit.text('#large-report'), /16 weights.*512 × 512.*uint8, float32.*1\.05 MB.*164 kB/s);
    // The result is offered again after a reload, and other settings are another result.
    await inPieces(visit);
    await visit.says('#kept-results', /inside_q4\.onnx/);
    await opened(visit, 'inside.onnx');
    await converted(visit);
    await same(visit, wanted);
    await emptied(visit);
    await chosen(visit, '#large-method', 'k_quant');
    await visit.tab.click('#convert');
    await converted(visit);
    await same(visit, byCommand('inside.onnx', 'inside_q4.onnx', '--config', '{"blocks":{"method":"k_quant"}}'));
    await emptied(visit);
    // This method has zero points always; the next one where they are asked for.
    assert.equal(await visit.tab.$eval('#large-zero-points', (box) => box.checkVisibility()), false);
    await chosen(visit, '#large-method', 'search');
    await planned(visit, () => visit.tab.click('#large-zero-points'));
    await visit.tab.click('#convert');
    await converted(visit);
    await same(visit, byCommand('inside.onnx', 'inside_q4.onnx', '--config', '{"blocks":{"method":"search","symmetric":false}}'));
    await emptied(visit);
    await visit.tab.click('#close-large');
    await visit.tab.waitForSelector('.drop');
  }));

  test('has the bytes of the command line in every form', () => visit({}, async (visit) => {
    await inPieces(visit);
    await opened(visit, 'inside.onnx');
    /** @type {[string, string, ...string[]][]} */
    const forms = [
      ['q4f16', 'inside_q4f16.onnx', '--config', '{"blocks":{"activations":"float16"}}'],
      ['fp16', 'inside_fp16.onnx', '--scheme', 'float16'],
      ['quantized', 'inside_quantized.onnx', '--scheme', 'dynamic'],
      ['weights', 'inside_weights_int8.onnx', '--scheme', 'weights'],
    ];
    for (const [form, out, ...options] of forms) {
      await chosen(visit, '#large-form', form);
      await visit.tab.click('#convert');
      await converted(visit);
      await same(visit, byCommand('inside.onnx', out, ...options));
      await emptied(visit);
    }
  }));

  test('copies tables that stay float, one of them beside its integers', () => visit({}, async (visit) => {
    await inPieces(visit);
    await opened(visit, 'tied.onnx');
    await visit.tab.click('#convert');
    await converted(visit);
    const wanted = byCommand('tied.onnx', 'tied_q4.onnx');
    const bytes = Object.entries(wanted).filter(([name]) => name !== 'tied_q4.onnx').reduce((sum, [, file]) => sum + file.length, 0);
    assert.ok(bytes > 2 * 4000 * 64 * 4, `${bytes} bytes hold two tables of floats`);
    await same(visit, wanted);
    await emptied(visit);
  }));

  test('goes on after a stop and a reload, with the same bytes', () => visit({}, async (visit) => {
    const { tab } = visit;
    writeFileSync(join(folder, 'long.onnx'), dense({ layers: 80, side: 768 }).model);
    await inPieces(visit);
    await opened(visit, 'long.onnx');
    const slow = () => chosen(visit, '#large-method', 'hqq');
    await slow();
    await tab.click('#convert');
    await tab.waitForFunction(() => Number(/** @type {HTMLProgressElement | null} */ (document.querySelector('.large progress'))?.value) > 0.1);
    await tab.click('#stop');
    await visit.says('#large-kept', /stopped at \d+ %/);
    const share = Number(/at (\d+) %/.exec(await visit.text('#large-kept'))?.[1]);
    assert.ok(share > 0 && share < 100, `${share} %`);
    await inPieces(visit);
    await visit.says('#kept-results', /long_q4\.onnx/);
    await opened(visit, 'long.onnx');
    // These settings are not those of the unfinished conversion.
    await visit.says('#large-misfit', /other settings/);
    await slow();
    await visit.says('#large-kept', new RegExp(`stopped at ${share} %`));
    await tab.click('#resume');
    // A reload in the middle of the work is like a tab that was killed.
    const more = share / 100 + 0.3;
    await tab.waitForFunction((part) => Number(/** @type {HTMLProgressElement | null} */ (document.querySelector('.large progress'))?.value) > part, {}, more);
    await inPieces(visit);
    await opened(visit, 'long.onnx');
    await slow();
    await visit.says('#large-kept', /stopped at \d+ %/);
    const later = Number(/at (\d+) %/.exec(await visit.text('#large-kept'))?.[1]);
    // How much is kept after the last journal depends on the disk.
    assert.ok(later >= share, `${later} % after ${share} %`);
    await tab.click('#resume');
    await converted(visit);
    await same(visit, byCommand('long.onnx', 'long_q4.onnx', '--config', '{"blocks":{"method":"hqq"}}'));
    await emptied(visit);
    await tab.click('#close-large');
  }));

  test('asks for its files of weights, and names one that is too short', () => visit({}, async (visit) => {
    const { tab } = visit;
    await inPieces(visit);
    await visit.choose('choose-model', join(folder, 'beside.onnx'));
    await visit.says('.asks li', /^weights\.bin$/);
    const short = join(scratch, 'short');
    mkdirSync(short, { recursive: true });
    writeFileSync(join(short, 'weights.bin'), beside.weights.subarray(0, -1000));
    await visit.choose('choose-weights', join(short, 'weights.bin'));
    await visit.says('.problem .message', /weights\.bin, which has only 4193304.*cut short/);
    await visit.choose('choose-weights', join(folder, 'weights.bin'));
    await tab.waitForSelector('#convert');
    await tab.click('#convert');
    await tab.waitForSelector('#large-done');
    await same(visit, byCommand('beside.onnx', 'beside_q4.onnx'));
    await emptied(visit);
    await tab.click('#close-large');
  }));

  test('says that there is no room, before it begins and in the middle, and loses nothing', async () => {
    const www = join(scratch, `www without room ${browser}`);
    cpSync('www', www, { recursive: true });
    const script = join(www, 'result-files.js');
    // The fourth stretch of weights is refused, once; later ones are taken.
    writeFileSync(script, `${readFileSync(script, 'utf8')}
      const write = FileSystemSyncAccessHandle.prototype.write;
      let left = 5;
      FileSystemSyncAccessHandle.prototype.write = function (bytes, options) {
        if (bytes.length > 20_000 && left-- === 0) throw new DOMException('full', 'QuotaExceededError');
        return write.call(this, bytes, options);
      };`);
    await visit({ mounts: { '/www/': www } }, async (visit) => {
      const { tab } = visit;
      await inPieces(visit);
      await tab.evaluate(() => {
        const estimate = navigator.storage.estimate.bind(navigator.storage);
        navigator.storage.estimate = async () => {
          navigator.storage.estimate = estimate;
          return { quota: 10_000_000, usage: 9_000_000 };
        };
      });
      await opened(visit, 'inside.onnx');
      await tab.waitForSelector('#convert');
      // The message can come while the button that was pressed still stands there.
      await planned(visit, () => tab.click('#convert'));
      await visit.says('.problem .message', /The result needs .* but this browser gives the page only 1\.00 MB: .*free some space/);
      await tab.click('#convert');
      await visit.says('.problem .message', /The storage is full, so inside_q4\.onnx_data \(983 kB\) can't be written: free some space and go on/);
      await tab.waitForSelector('#resume');
      await tab.click('#resume');
      await tab.waitForSelector('#large-done');
      await same(visit, byCommand('inside.onnx', 'inside_q4.onnx'));
      await emptied(visit);
    });
  });

  if (browser === 'chromium') {
    test('is written into a folder that the person chose, and replaces no file there', () => visit({}, async (visit) => {
      const { tab } = visit;
      await inPieces(visit);
      // The dialog of the browser can't be driven; a folder of the page's storage stands for one.
      await tab.evaluate(() => Object.assign(window, {
        showDirectoryPicker: async () => (await navigator.storage.getDirectory()).getDirectoryHandle('chosen', { create: true }),
      }));
      const written = () => tab.evaluate(async () => {
        const chosen = await (await navigator.storage.getDirectory()).getDirectoryHandle('chosen');
        const found = [];
        for await (const [name, handle] of /** @type {any} */ (chosen).entries()) found.push([name, [...new Uint8Array(await (await handle.getFile()).arrayBuffer())]]);
        return found;
      });
      await opened(visit, 'beside.onnx', 'weights.bin');
      await tab.waitForSelector('#convert');
      await tab.click('#choose-folder');
      await visit.says('#large-place', /folder chosen/);
      await tab.waitForFunction(() => !document.querySelector('#convert'));
      await tab.waitForSelector('#convert');
      await tab.click('#convert');
      await converted(visit);
      assert.match(await visit.text('#large-written'), /folder chosen has beside_q4\.onnx, beside_q4\.onnx_data/);
      const found = Object.fromEntries((await written()).map(([name, bytes]) => [name, Buffer.from(bytes)]));
      const wanted = byCommand('beside.onnx', 'beside_q4.onnx');
      assert.deepEqual(Object.keys(found).sort(), Object.keys(wanted));
      for (const [name, bytes] of Object.entries(wanted)) assert.ok(found[name].equals(bytes), name);
      await tab.select('#large-bits', '8');
      await tab.select('#large-bits', '4');
      await tab.waitForSelector('#convert');
      await tab.click('#convert');
      await visit.says('.problem .message', /folder chosen has a file beside_q4\.onnx already/);
      await tab.evaluate(async () => (await navigator.storage.getDirectory()).removeEntry('chosen', { recursive: true }));
    }));

    test('may have a weight of more than 33 million numbers', () => visit({}, async (visit) => {
      const { tab } = visit;
      await inPieces(visit);
      const { model, weights } = dense({ layers: 1, side: 5888, external: true });
      writeFileSync(join(folder, 'wide.onnx'), model);
      mkdirSync(join(folder, 'wide'), { recursive: true });
      writeFileSync(join(folder, 'wide', 'weights.bin'), weights);
      await visit.choose('choose-model', join(folder, 'wide.onnx'), join(folder, 'wide', 'weights.bin'));
      await tab.waitForSelector('#convert');
      assert.match(await visit.text('.large .facts'), /34,668,544/);
      await tab.click('#convert');
      await converted(visit);
      assert.equal(await tab.$$eval('.files a[download]', (links) => links.length), 3);
      await emptied(visit);
    }));
  }
});
