// scripts/variants.mjs reads wasm-pack.toml.

import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readVariants, rustFlags } from '../../scripts/variants.mjs';

/** @param {string} text */
function reading(text) {
  const file = join(mkdtempSync(join(tmpdir(), 'octet-')), 'wasm-pack.toml');
  writeFileSync(file, text);
  return () => readVariants(file);
}

const whole = ['package = "octet"', 'threads = false', 'cargo-features = []', 'target-features = ["simd128"]', 'link-args = []', 'cfg = []'];

test('our own file gives the two variants we ship, the tokenizer and the command line', () => {
  const variants = readVariants(new URL('../../wasm-pack.toml', import.meta.url));
  assert.deepEqual(variants.map(({ name, threads }) => [name, threads]), [['threads', true], ['baseline', false], ['tokenizer', false], ['node', true]]);
  assert.equal(rustFlags(variants[3]), rustFlags(variants[0]), 'they share a target folder');
  assert.deepEqual(variants.map(({ target }) => target), ['threads', 'baseline', 'tokenizer', 'threads']);
  assert.match(rustFlags(variants[0]), /^-C target-feature=\+atomics,.* -C link-arg=--shared-memory .* --cfg getrandom_backend="wasm_js"$/);
  assert.equal(rustFlags(variants[1], ['-C first']), '-C first -C target-feature=+simd128 --cfg getrandom_backend="wasm_js"');
});

test('a list may stand on several lines, with comments between', () => {
  const read = reading(['[variants.a]', ...whole.slice(0, 4), 'link-args = [', '  "--one",', '  # why', "  '--two'", ']', 'cfg = []'].join('\n'));
  assert.deepEqual(read()[0].linkArgs, ['--one', '--two']);
});

for (const [what, text, error] of /** @type {[string, string, RegExp][]} */ ([
  ['an unknown key', '[variants.a]\nopt = true', /line 2: unknown key "opt"/],
  ['a key outside a variant', 'threads = true', /line 1: not understood/],
  ['a number', '[variants.a]\nthreads = 1', /line 2: "1" is neither/],
  ['a list of something else', '[variants.a]\ncfg = [1]', /line 2: not a list of plain strings/],
  ['a list that never ends', '[variants.a]\ncfg = ["a",', /neither true, false nor a list/],
  ['a missing key', '[variants.a]\nthreads = true', /"a" lacks package, cargo-features/],
  ['a variant twice', ['[variants.a]', ...whole, '[variants.a]'].join('\n'), /stands twice/],
])) {
  test(`${what} is refused with its place`, () => assert.throws(reading(text), error));
}
