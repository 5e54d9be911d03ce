// The search under a budget: a budget in, a verdict and a curve out, a point moved and taken.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { dense, npy } from './model.mjs';
import { inBrowsers, scratch } from './walk.mjs';
import { moved, ticks } from '../../www/features/search/axes.js';
import { parse } from '../../www/library/yaml.js';

/** @import { Visit } from './walk.mjs' */

// A table's numbers are classes if the output's name says so.
const small = dense({ layers: 6, side: 48, output: 'scores' }).model;
/** Rows that differ. @param {number} index */
const sample = (index) => npy(new Float32Array(48).map((_, k) => Math.sin(index * 3 + k / 5) + ((k * 7 + index) % 5) / 20), [1, 48]);
const eight = [0, 1, 2, 3, 4, 5, 6, 7].map(sample);

/** @param {Visit} visit @param {string} kind @param {string} amount @param {string} [unit] */
async function budget({ tab }, kind, amount, unit) {
  await tab.select('#search-kind', kind);
  await tab.$eval('#search-amount', (field, text) => {
    /** @type {HTMLInputElement} */ (field).value = text;
    field.dispatchEvent(new Event('change', { bubbles: true }));
  }, amount);
  if (unit) await tab.select('#search-unit', unit);
}

/** Opens the model, the samples and the tab. @param {Visit} visit */
async function opened(visit) {
  const { tab } = visit;
  const files = eight.map((_, index) => join(scratch, `s${index}.npy`));
  files.forEach((file, index) => writeFileSync(file, eight[index]));
  await visit.drop({ 'small.onnx': small });
  await tab.waitForSelector('#card-title');
  await tab.click('#tab-search');
  await visit.says('#search-why', /at least two samples/);
  await visit.choose('choose-samples', ...files);
  await visit.says('#search-why', /Nothing changes until/);
  return files;
}

/** The settings on the page. @param {Visit} visit @returns {Promise<string>} */
const document = ({ tab }) => tab.$eval('#document', (area) => /** @type {HTMLTextAreaElement} */ (area).value);

inBrowsers('a search under a budget', (visit, browser) => {
  test('gives the settings of the command line; a point moves by keys and mouse, and its settings are taken', () => visit({}, async (visit) => {
    const { tab } = visit;
    const files = await opened(visit);
    await budget(visit, 'sqnr', '32');
    await tab.click('#search-start');
    await visit.says('#search-answer', /^The budget sqnr=32dB is not decidable with so few samples[^]*95 % confidence/);
    assert.equal(await tab.$eval('#search-verdict', (said) => /** @type {HTMLElement} */ (said).dataset.verdict), 'undecidable');
    assert.match(await visit.text('#search-result'), /4 samples chose, 4 verified[^]*Times come from a model of costs/);

    const at = () => tab.$eval('#search-point', (handle) => Number(handle.getAttribute('aria-valuenow')));
    const last = await tab.$eval('#search-point', (handle) => Number(handle.getAttribute('aria-valuemax')));
    const chosen = await at();
    assert.ok(last > 10 && chosen > 0 && chosen < last, `${chosen} of ${last}`);
    await tab.click('#search-take');
    await tab.waitForFunction(() => /tensors:/.test(/** @type {HTMLTextAreaElement} */ (window.document.querySelector('#document')).value));
    const folder = join(scratch, `search ${browser}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'small.onnx'), small);
    execFileSync(process.env.OCTET ?? '', ['search', 'small.onnx', '--calib', ...files, '--budget', 'sqnr=32', '--save-settings', 'settings.yaml', '--save-sensitivities', 'their.json'], { cwd: folder });
    const theirs = parse(readFileSync(join(folder, 'settings.yaml'), 'utf8'));
    const ours = parse(await document(visit));
    for (const key of ['tensors', 'guard', 'fine_first']) assert.deepEqual(ours[key], theirs[key], `the command line gives other ${key}`);
    assert.ok(Object.keys(ours.tensors).length > 3, JSON.stringify(ours));

    await tab.$eval('#search-point', (handle) => /** @type {SVGElement} */ (handle).focus());
    await tab.keyboard.press('Home');
    assert.equal(await at(), 0);
    await tab.keyboard.press('ArrowRight');
    assert.equal(await at(), 1);
    await tab.keyboard.press('End');
    assert.equal(await at(), last);
    await visit.says('#search-words', /^This point: [\d.]+ kB[^]*8 bits: 0/);
    await visit.says('#panel-search table', /looked at/);
    // From the last point to the first, along the curve.
    const box = await tab.$eval('.search-curve', (drawn) => {
      drawn.scrollIntoView({ block: 'center' });
      const { left, top, right, bottom } = drawn.getBoundingClientRect();
      return { left, top, right, bottom };
    });
    await tab.mouse.move(box.right - 20, box.top + 16);
    await tab.mouse.down();
    await tab.mouse.move(box.left + 59, box.bottom - 42, { steps: 4 });
    await tab.mouse.up();
    assert.ok((await at()) < last / 2, `the drag ended at ${await at()} of ${last}`);
    await tab.click('#search-back');
    assert.equal(await at(), chosen);
    await tab.keyboard.press('Tab');

    await tab.click('#search-tensors summary');
    await visit.says('#search-tensors table', /float|int|[iu]16|[iu]4/);
    await tab.click('#search-save');
    const saved = JSON.parse((await visit.saved('small.sensitivities.json')).toString());
    const their = JSON.parse(readFileSync(join(folder, 'their.json'), 'utf8'));
    assert.deepEqual(saved.tensors.map((/** @type {any} */ one) => one.name), their.tensors.map((/** @type {any} */ one) => one.name));

    // What was measured serves the next budget, although the settings are those of a point now.
    await budget(visit, 'bytes', '60', '%');
    await tab.click('#search-start');
    await visit.says('#search-answer', /^The choice keeps the budget bytes=60%/);
    assert.match(await visit.text('#search-result'), /not measured again/);
    // A file that was edited counts.
    const edited = join(scratch, `edited ${browser}.json`);
    writeFileSync(edited, JSON.stringify({ ...their, tensors: their.tensors.map((/** @type {any} */ one) => ({ ...one, noise: { 8: one.noise[8] } })) }));
    await tab.$eval('#search-choices', (details) => details.setAttribute('open', ''));
    await visit.choose('search-file', edited);
    await visit.says('#search-file-name', /takes the sensitivities of edited/);
    await tab.click('#search-start');
    await tab.waitForFunction(() => window.document.querySelector('#search-point')?.getAttribute('aria-valuemax') === '0');
  }));

  test('a budget that can’t be met and a file that can’t be read are refused in words, and a search stops', () => visit({}, async (visit) => {
    const { tab } = visit;
    await opened(visit);
    await budget(visit, 'bytes', '0.1', 'kB');
    await tab.click('#search-start');
    await visit.says('#search-failure', /can't be met: the best that these candidates reach is \d+ bytes/);
    await budget(visit, 'accuracy', '60');
    await tab.click('#search-start');
    await visit.says('#search-answer', /^The budget accuracy=60%[^]*of the answers changed/);
    const broken = join(scratch, `broken ${browser}.json`);
    writeFileSync(broken, '{"octetSensitivities": 1}');
    await tab.$eval('#search-choices', (details) => details.setAttribute('open', ''));
    await visit.choose('search-file', broken);
    await visit.says('#search-file-name', /broken/);
    await budget(visit, 'sqnr', '32');
    await tab.click('#search-start');
    await visit.says('#search-failure', /sensitivities can't be read/);
    await tab.click('#search-no-file');
    await tab.click('#search-profile');
    // The search of this small model takes less time than two clicks of the test.
    await tab.evaluate(() => {
      for (const id of ['search-start', 'search-stop']) window.document.getElementById(id)?.click();
    });
    await tab.waitForSelector('#search-stop[hidden]');
    assert.match(await visit.text('#search-result'), /a model of costs/);
    await tab.click('#search-start');
    await visit.says('#search-result', /Times are measured in this browser/);
  }));
});

test('keys move by one, ten or to an end, and never beyond', () => {
  const keys = ['ArrowRight', 'ArrowUp', 'ArrowLeft', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End', 'Enter'];
  assert.deepEqual(keys.map((key) => moved(key, 5, 8)), [6, 6, 4, 4, 8, 0, 0, 8, null]);
});

test('axes have a few round numbers within their ends', () => {
  assert.deepEqual(ticks(12, 58), [20, 30, 40, 50]);
  assert.deepEqual(ticks(3, 90), [20, 40, 60, 80]);
  assert.deepEqual(ticks(0, 1).map((mark) => mark.toFixed(1)), ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']);
  assert.deepEqual(ticks(1e6, 4.2e6), [1e6, 2e6, 3e6, 4e6]);
  assert.deepEqual(ticks(7, 7), [7]);
});
