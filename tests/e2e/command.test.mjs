// The equivalent command line and the names of downloads.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { exact } from './model.mjs';
import { inBrowsers, photos, scratch } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

const name = "it's small.onnx";

/**
 * Enters a value into a field as a user would.
 *
 * @param {Visit} visit
 * @param {string} selector
 * @param {string} value
 */
const fill = ({ tab }, selector, value) => tab.$eval(selector, (field, given) => {
  /** @type {HTMLInputElement} */ (field).value = given;
  field.dispatchEvent(new Event('change'));
}, value);

/** An image model and two photos, with a preprocessing that no preset has. @param {Visit} visit */
async function pictures(visit) {
  const { tab } = visit;
  await visit.drop({ [name]: exact() });
  await tab.waitForSelector('#card-title');
  await visit.choose('choose-samples', ...photos.slice(0, 2));
  await visit.says('#run-why', /Your file is not changed/);
  await tab.select('#preset', 'raw');
  await tab.select('#resize', 'exact');
  await tab.select('#order', 'bgr');
  await fill(visit, '#scale', '0.25');
  for (const [channel, mean] of ['16', '24', '-8'].entries()) await fill(visit, `#mean-${channel}`, mean);
  for (const [channel, deviation] of ['2', '4', '0.5'].entries()) await fill(visit, `#std-${channel}`, deviation);
}

inBrowsers('what the page hands on', (visit, browser) => {
  test('the command line that is copied gives the bytes of the download', () => visit({}, async (visit) => {
    await pictures(visit);
    const { tab } = visit;
    await tab.$eval('#document', (area) => (/** @type {HTMLTextAreaElement} */ (area).value = 'weights: {type: u8}\nby_node:\n  "it\'s conv": {activations: {symmetric: false}}\n'));
    await tab.$eval('#apply-document', (button) => /** @type {HTMLElement} */ (button).click());
    await visit.says('#command-line', /--config/);
    await visit.quantize();
    const file = await visit.downloaded('_uint8.onnx');
    const command = await visit.text('#command-line');
    const folder = join(scratch, `command ${browser}`);
    mkdirSync(join(folder, 'SAMPLES'), { recursive: true });
    writeFileSync(join(folder, name), exact());
    for (const photo of photos.slice(0, 2)) copyFileSync(photo, join(folder, 'SAMPLES', basename(photo)));
    symlinkSync(process.env.OCTET ?? '', join(folder, 'octet'));
    execFileSync('sh', ['-c', command], { cwd: folder, env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } });
    assert.ok(readFileSync(join(folder, "it's small_uint8.onnx")).equals(file), command);
    // Other input values give another file, so this checks that the preprocessing is passed on.
    const plain = `${command.replace(/,"images":\{[^}]*\}/, '')} --out plain.onnx`;
    assert.doesNotMatch(plain, /images/);
    execFileSync('sh', ['-c', plain], { cwd: folder, env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } });
    assert.ok(!readFileSync(join(folder, 'plain.onnx')).equals(file));
  }));

  test('each scheme has a file name of its own, and ranges are by auto where nothing is said', () => visit({}, async (visit) => {
    await pictures(visit);
    const { tab } = visit;
    assert.equal(await tab.$eval('#method', (field) => /** @type {HTMLSelectElement} */ (field).value), 'auto');
    /** @type {string[]} */
    const names = [];
    for (const scheme of ['static', 'dynamic', 'weights', 'float16']) {
      await tab.select('#scheme', scheme);
      await visit.quantize();
      await tab.waitForFunction((before) => [...document.querySelectorAll('a[download$=".onnx"]')].some((link) => !before.includes(/** @type {HTMLAnchorElement} */ (link).download)), {}, names);
      names.push(await tab.$eval('a[download$=".onnx"]', (link) => /** @type {HTMLAnchorElement} */ (link).download));
    }
    assert.deepEqual(names, ['_int8', '_quantized', '_weights_int8', '_fp16'].map((ending) => `it's small${ending}.onnx`));
    const reports = await tab.$$eval('a[download$=".yaml"]', (links) => links.map((link) => /** @type {HTMLAnchorElement} */ (link).download));
    assert.deepEqual(reports, ["it's small_fp16.yaml"]);
  }));
});
