// A calibration that several people share: each page saves the statistics of its samples, and one adds
// the files of all.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { exact, npy, withExternalData } from './model.mjs';
import { inBrowsers, scratch } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

const name = 'shared.onnx';
const shape = [1, 3, 4, 4];

/** Multiples of 1/8, so that sums are exact in any order. @param {number} seed */
const sample = (seed) => npy(new Float32Array(48).map((_, at) => (((at + 3) * (seed * 7 + 5)) % 61 - 30) / 8), shape);

/** Some samples by name. @param {number} first @param {number} end */
const samples = (first, end) => Object.fromEntries(Array.from({ length: end - first }, (_, at) => [`s${first + at}.npy`, sample(first + at)]));

const data = '[aria-labelledby=data-title]';

/** Saves the statistics of the loaded samples under a name. @param {Visit} visit @param {string} source */
async function saved(visit, source) {
  const { tab } = visit;
  await tab.$eval('#sharing', (details) => void (/** @type {HTMLDetailsElement} */ (details).open = true));
  await tab.waitForSelector('#statistics-source');
  await tab.$eval('#statistics-source', (field, given) => {
    /** @type {HTMLInputElement} */ (field).value = given;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }, source);
  await tab.waitForSelector('#save-statistics:not([disabled])');
  await tab.click('#save-statistics');
  return visit.saved(`shared.${source}.stats`);
}

inBrowsers('a shared calibration', (visit, browser) => {
  test('statistics of two people give the bytes of all samples, here and on the command line', () => visit({}, async (visit) => {
    await visit.drop({ [name]: exact(), ...samples(0, 4) });
    await visit.says(data, /4 samples/);
    const ann = await saved(visit, 'ann');
    await visit.press('Remove all');
    await visit.drop(samples(4, 7));
    await visit.says(data, /3 samples/);
    const bob = await saved(visit, 'bob');
    assert.ok(!ann.includes('s1.npy'), 'the file names a sample');

    await visit.drop(samples(0, 7));
    await visit.says(data, /7 samples/);
    await visit.quantize();
    const together = await visit.downloaded('.onnx');

    await visit.load();
    await visit.drop({ [name]: exact(), 'ann.stats': ann });
    await visit.says('#statistics-note', /4 samples from 1 source \(ann\)/);
    await visit.drop({ 'bob.stats': bob });
    await visit.says('#statistics-note', /7 samples from 2 sources \(ann, bob\)/);
    await visit.quantize();
    assert.ok((await visit.downloaded('.onnx')).equals(together), 'other bytes than from the samples');
    const command = await visit.text('#command-line');
    assert.match(command, /--stats MERGED\.stats$/);
    // The same file twice, and no file at all.
    await visit.drop({ 'again.stats': bob });
    await visit.says('.problem .message', /both hold shard 1\/1 of the samples `bob`/);
    await visit.says('#statistics-note', /7 samples/);
    await visit.press('Remove statistics');
    await visit.says('#run-why', /Add at least one sample/);

    const folder = join(scratch, `shared ${browser}`);
    mkdirSync(folder, { recursive: true });
    for (const [file, bytes] of Object.entries({ [name]: exact(), 'ann.stats': ann, 'bob.stats': bob })) writeFileSync(join(folder, file), bytes);
    symlinkSync(process.env.OCTET ?? '', join(folder, 'octet'));
    const run = (/** @type {string} */ line) => execFileSync('sh', ['-c', line], { cwd: folder, env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } });
    run('octet merge ann.stats bob.stats --complete --out MERGED.stats');
    run(`${command} --out q.onnx`);
    assert.ok(readFileSync(join(folder, 'q.onnx')).equals(together), 'other bytes on the command line');
  }));

  test('settings of two passes ask everyone for the second', () => visit({}, async (visit) => {
    await visit.load(`#settings=${encodeURIComponent('{"rounding":"gptq"}')}`);
    await visit.drop({ [name]: exact(), ...samples(0, 5) });
    await visit.says(data, /5 samples/);
    await visit.quantize();
    const alone = await visit.downloaded('.onnx');
    const first = await saved(visit, 'ann');
    await visit.drop({ 'first.stats': first });
    await visit.says('#statistics-note', /5 samples/);
    await visit.start();
    await visit.says('.problem .message', /need another pass over the samples .*gram-matrices/);
    const second = await saved(visit, 'ann');
    await visit.drop({ 'second.stats': second });
    await visit.quantize();
    assert.ok((await visit.downloaded('.onnx')).equals(alone));
  }));

  test('statistics of another model, and of weights in other files, are refused by name', () => visit({}, async (visit) => {
    const weights = Buffer.from(new Float32Array([1, 2, 3, 4]).buffer);
    const values = Object.fromEntries([0, 1].map((seed) => [`v${seed}.npy`, npy(new Float32Array([seed, 1, 2, -3]), [4])]));
    await visit.drop({ [name]: withExternalData('w.bin'), 'w.bin': weights });
    await visit.tab.waitForSelector('#card-title');
    await visit.drop(values);
    await visit.says(data, /2 samples/);
    const made = await saved(visit, 'ann');
    await visit.drop({ 'ann.stats': made });
    await visit.says('#statistics-note', /2 samples/);

    await visit.drop({ [name]: withExternalData('w.bin'), 'w.bin': Buffer.from(new Float32Array([1, 2, 3, 5]).buffer) });
    await visit.tab.waitForFunction(() => !document.querySelector('#statistics-note'));
    await visit.drop({ 'ann.stats': made });
    await visit.says('.problem .message', /has another model than the model: .*w\.bin/);
    await visit.drop({ 'ann.stats': made.subarray(0, 100) });
    await visit.says('.problem .message', /ann\.stats: the file is cut off or damaged/);
  }));
});
