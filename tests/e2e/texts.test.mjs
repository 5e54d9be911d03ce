// Texts with the model's tokenizer: from the drop to the figures of a language model.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { languageModel } from './model.mjs';
import { inBrowsers } from './walk.mjs';

const words = ['[PAD]', '[UNK]', 'the', 'cat', 'sat', 'on', 'a', 'mat'];
const tokenizer = {
  version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
  pre_tokenizer: { type: 'Whitespace' }, post_processor: null, decoder: null,
  model: { type: 'WordLevel', vocab: Object.fromEntries(words.map((word, id) => [word, id])), unk_token: '[UNK]' },
};
const json = Buffer.from(JSON.stringify(tokenizer));
const texts = Buffer.from('the cat sat\n\non a mat\nthe dog\n');

/** The number of samples in the data panel. */
const data = '[aria-labelledby=data-title] .file';

inBrowsers('texts as samples', (visit) => {
  test('they wait for the tokenizer, are shown as tokens and judge the model', () => visit({}, async (visit) => {
    const tokens = () => visit.tab.$$eval('.tokens li', (all) => all.map((one) => one.textContent));
    const loaded = () => visit.requests.filter((url) => url.includes('/pkg/tokenizer/')).length;
    await visit.drop({ 'm.onnx': languageModel(words.length), 'a.txt': texts });
    await visit.says('.text-note', /a\.txt: texts need the tokenizer\.json/);
    assert.equal(loaded(), 0);
    await visit.drop({ 'tokenizer.json': json });
    await visit.says(data, /3 samples/);
    await visit.tab.waitForSelector('.tokens li');
    assert.deepEqual(await tokens(), ['the2', 'cat3', 'sat4']);
    assert.ok(loaded() > 0);
    await visit.says('.sample table', /past_key_values\.0\.key.*1×2×0×4/);

    await visit.tab.$eval('#text-length', (field) => {
      /** @type {HTMLInputElement} */ (field).value = '2';
      field.dispatchEvent(new Event('change', { bubbles: true }));
    });
    await visit.says('.text-note', /2 of 3 texts are cut/);
    await visit.tab.waitForFunction(() => document.querySelectorAll('.tokens li').length === 2);
    assert.match(await visit.tab.$eval('#command-line', (line) => line.textContent ?? ''), /--samples SAMPLES --max-length 2$/);
    assert.match(await visit.tab.evaluate(() => location.hash), /^#texts=/);

    await visit.drop({ 'b.jsonl': Buffer.from('{"id": 1, "text": "a cat"}\n') });
    await visit.says(data, /4 samples/);
    await visit.quantize();
    await visit.judged();
    await visit.says('.language', /logits: KL divergence \S+ nats, perplexity \S+ in float, \S+ quantized, over 8 positions/);
  }));

  test('their settings survive a reload', () => visit({}, async (visit) => {
    await visit.load(`#texts=${encodeURIComponent('{"maxLength":1,"unit":"paragraphs"}')}`);
    await visit.drop({ 'm.onnx': languageModel(words.length), 'a.txt': texts, 'tokenizer.json': json });
    await visit.says(data, /2 samples/);
    await visit.says('.text-note', /2 of 2 texts are cut/);
    assert.equal(await visit.tab.$eval('#text-length', (field) => /** @type {HTMLInputElement} */ (field).value), '1');
  }));

  test('a broken tokenizer is named, and the samples before it stay', () => visit({}, async (visit) => {
    await visit.drop({ 'm.onnx': languageModel(words.length), 'a.txt': texts, 'tokenizer.json': json });
    await visit.says(data, /3 samples/);
    await visit.drop({ 'tokenizer.json': Buffer.from('{}') });
    await visit.says('.problem .message', /tokenizer\.json is not a tokenizer/);
    await visit.says(data, /3 samples/);
  }));
});
