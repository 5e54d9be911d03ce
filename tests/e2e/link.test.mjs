// Links: a model, samples and settings of the page's own origin, by the address alone.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { archive } from './archive.mjs';
import { convolution, dense, exact, npy } from './model.mjs';
import { inBrowsers, scratch } from './walk.mjs';

const folder = join(scratch, 'linked');
mkdirSync(join(folder, 'deep'), { recursive: true });
const values = (/** @type {number} */ seed) => Float32Array.from({ length: 48 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1);
const sample = (/** @type {number} */ seed) => npy(values(seed), [1, 3, 4, 4]);
const external = dense({ layers: 2, side: 8, external: true });
/** @type {Record<string, string | Uint8Array>} */
const files = {
  'small.onnx': exact(),
  'other.onnx': convolution(),
  'one.npy': sample(0),
  'samples.zip': archive({ 'set/0.npy': sample(0), 'set/1.npy': sample(1), 'set/2.npy': sample(2) }),
  'cut.zip': archive({ '0.npy': sample(0) }).subarray(0, 90),
  'settings.yaml': '# of the link\nactivations:\n  type: i8\n',
  'settings.json': '{ "method": "minmax" }',
  'wrong.yaml': 'activations: [1,\n',
  'deep/external.onnx': external.model,
  'deep/weights.bin': external.weights,
};
for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
const options = { mounts: { '/linked/': folder } };

/** @param {Record<string, string | string[]>} given */
function query(given) {
  const all = new URLSearchParams();
  for (const [key, value] of Object.entries(given)) for (const one of [value].flat()) all.append(key, one);
  return `?${all}`;
}

inBrowsers('a link', (visit) => {
  test('opens model, samples and settings, which the panels show, and a run follows', () => visit(options, async (visit) => {
    await visit.load(query({ model: 'linked/small.onnx', samples: 'linked/samples.zip', settings: '/linked/settings.yaml' }));
    await visit.says('#run-why', /Your file is not changed/);
    assert.match(await visit.text('.file'), /small\.onnx/);
    assert.match(await visit.text('#left'), /3 samples/);
    assert.equal(await visit.tab.$eval('#activations', (field) => /** @type {HTMLSelectElement} */ (field).value), 'i8');
    await visit.quantize();
    assert.ok((await visit.downloaded('.onnx')).length > 300);
  }));

  test('is copied with the settings as they are now, and opens them again', () => visit(options, async (visit) => {
    const { tab } = visit;
    await tab.evaluateOnNewDocument(() => Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (/** @type {string} */ text) => void (/** @type {any} */ (window).copied = text) } }));
    await visit.load(query({ model: 'linked/small.onnx', samples: ['linked/one.npy', 'linked/samples.zip'], settings: 'linked/settings.json' }));
    await visit.says('#left', /4 samples/);
    await tab.select('#activations', 'u16');
    await tab.click('#copy-link');
    await tab.waitForFunction(() => /** @type {any} */ (window).copied);
    const copied = new URL(await tab.evaluate(() => /** @type {any} */ (window).copied));
    assert.equal(copied.origin + copied.pathname, visit.server?.url);
    await visit.load(copied.href.slice(copied.origin.length + 1));
    await visit.says('#left', /4 samples/);
    const shown = (/** @type {string} */ id) => tab.$eval(id, (field) => /** @type {HTMLSelectElement} */ (field).value);
    assert.deepEqual([await shown('#activations'), await shown('#method')], ['u16', 'minmax']);
    // A model from elsewhere has no link.
    await visit.drop({ 'dropped.onnx': convolution() });
    await visit.says('.file', /dropped\.onnx/);
    assert.equal(await tab.$('#copy-link'), null);
  }));

  test('brings the weights that are in files beside the model', () => visit(options, async (visit) => {
    await visit.load(query({ model: 'linked/deep/external.onnx' }));
    await visit.says('#run-why', /at least one sample/);
    assert.equal(await visit.tab.$('#choose-external'), null);
    assert.ok(visit.requests.some((url) => url.endsWith('/linked/deep/weights.bin')));
  }));

  test('to another origin, to nothing, or to a damaged file is refused with reason and remedy', () => visit(options, async (visit) => {
    /** @type {[Record<string, string>, RegExp][]} */
    const refused = [
      [{ model: 'https://elsewhere.invalid/m.onnx' }, /elsewhere\.invalid.*own origin only.*proxy.*hub\.html/],
      [{ model: 'linked/small.onnx', samples: '//elsewhere.invalid/s.zip' }, /samples is at|samples.*own origin only/],
      [{ model: 'data:application/octet-stream,x' }, /data:.*own origin only/],
      [{ samples: 'linked/one.npy' }, /A link needs a model/],
      [{ model: 'linked/absent.onnx' }, /absent\.onnx could not be downloaded.*404.*Check the path/],
      [{ model: 'linked/small.onnx', settings: 'linked/wrong.yaml' }, /wrong\.yaml is no settings document: line 1/],
      [{ model: 'linked/small.onnx', samples: 'linked/cut.zip' }, /archive cannot be read/],
    ];
    for (const [given, words] of refused) {
      await visit.load(query(given));
      await visit.says('.problem .message', words);
      assert.equal(await visit.tab.$('#card-title'), null, 'nothing was opened');
      await visit.tab.click('#close-problem');
      assert.ok(await visit.tab.$('#choose-model'), 'the page takes another model');
    }
    visit.errors = visit.errors.filter((error) => !/404/.test(error));
  }));

  test('leaves what the browser kept from the last visit', () => visit(options, async (visit) => {
    await visit.drop({ 'mine.onnx': convolution() });
    await visit.tab.waitForSelector('#card-title');
    await visit.load(query({ model: 'linked/small.onnx' }));
    await visit.says('.file', /small\.onnx/);
    await visit.load();
    await visit.says('#stored', /mine\.onnx/);
    await visit.tab.click('#restore');
    await visit.says('.file', /mine\.onnx/);
  }));
});
