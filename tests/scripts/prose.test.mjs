// The lint of words reports each kind of problem, and nothing for good text.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

/** The lint's output for a tree of files. @param {Record<string, string>} files */
function lint(files) {
  const root = mkdtempSync(join(tmpdir(), 'octet-prose-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { status, stderr } = spawnSync(process.execPath, ['scripts/prose.mjs', root], { encoding: 'utf8' });
  return { status, stderr };
}

const long = `${'word '.repeat(31)}end.`;

/** @type {[string, Record<string, string>, RegExp | null][]} */
const cases = [
  ['good text', { 'src/a.rs': '/// The scale of a tensor.\nstruct Scale;\n', 'docs/a.md': '# A\n\nShort. See [A](#a).\n' }, null],
  ['a relative clause', { 'src/a.rs': '/// Whether it is float.\nfn f() {}\n' }, /src\/a\.rs:1: the comment opens with/],
  ['a relative clause in JavaScript', { 'www/a.js': '/**\n * What it is.\n */\n' }, /www\/a\.js:1: the comment opens with/],
  ['the second line of a comment', { 'src/a.rs': '/// Tells a kind:\n/// What it is.\nfn f() {}\n' }, null],
  ['a type declared twice', { 'src/a.rs': 'struct Plan;\n', 'src/b.rs': 'struct Plan;\n' }, /Plan is declared 2 times/],
  ['a type declared in two crates', { 'crates/onnx/a.rs': 'struct Plan;\n', 'src/b.rs': 'struct Plan;\n' }, /Plan is declared 2 times/],
  ['a retired type', { 'src/a.rs': 'enum Kind {}\n' }, /Kind is retired/],
  ['a retired file', { 'src/quantize/compensate/mod.rs': '\n' }, /this name was replaced/],
  ['a long sentence over lines', { 'docs/a.md': `${long.slice(0, 80)}\n${long.slice(80)}\n` }, /a sentence of 32 words/],
  ['a long line', { 'docs/a.md': `${'x'.repeat(101)}\n` }, /101 columns/],
  ['a long line of a table', { 'docs/a.md': `| ${'x'.repeat(101)} |\n` }, null],
  ['a link to no file', { 'docs/a.md': '[b](b.md)\n' }, /leads nowhere/],
  ['a link to no heading', { 'docs/a.md': '# A\n\n[b](#b)\n' }, /no heading for #b/],
];

for (const [name, files, expected] of cases) {
  test(`words: ${name}`, () => {
    const { status, stderr } = lint(files);
    assert.equal(status, expected ? 1 : 0, stderr);
    if (expected) assert.match(stderr, expected);
  });
}
