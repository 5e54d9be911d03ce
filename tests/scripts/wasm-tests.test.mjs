// scripts/wasm-tests.mjs counts only passed tests as success.

import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runTests, verdict } from '../../scripts/wasm-tests.mjs';

test('only a closing line of the runner with tests that passed is a success', () => {
  /** @type {[string, boolean][]} */
  const cases = [
    ['test result: ok. 12 passed; 0 failed; 0 ignored; 0 filtered out; finished in 1.2s', true],
    ['running 3 tests\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 filtered out', false],
    ['test result: ok. 0 passed; 0 failed; 12 ignored; 0 filtered out', false],
    ['Loading wasm module...', false],
    ['', false],
  ];
  for (const [output, ok] of cases) assert.equal(verdict(output).ok, ok, output);
});

/** A runner that serves this page instead of tests. @param {string} page @param {string} [first] what its first start serves */
function runnerWith(page, first = page) {
  const file = join(mkdtempSync(join(tmpdir(), 'octet-')), 'runner.mjs');
  writeFileSync(file, `#!${process.execPath}
import { createServer } from 'node:http';
import { existsSync, writeFileSync } from 'node:fs';
const started = ${JSON.stringify(`${file}.started`)};
const page = existsSync(started) ? ${JSON.stringify(page)} : ${JSON.stringify(first)};
writeFileSync(started, '');
const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(page));
server.listen(0, '127.0.0.1', () => console.log(\`Interactive browsers tests are now available at http://127.0.0.1:\${server.address().port}\`));
`, { mode: 0o755 });
  return file;
}

const shown = (/** @type {string} */ text) => `<!doctype html><pre id="output">${text}</pre>`;

for (const browser of /** @type {const} */ (['chromium', 'firefox'])) {
  test(`the page decides in ${browser}: passed, failed, and no worker`, async () => {
    const passed = await runTests('x.wasm', browser, { runner: runnerWith(shown('test result: ok. 2 passed; 0 failed; 0 ignored;')) });
    assert.deepEqual([passed.ok, passed.why], [true, '2 passed']);
    const failed = await runTests('x.wasm', browser, { runner: runnerWith(shown('test result: FAILED. 1 passed; 1 failed; 0 ignored;')) });
    assert.deepEqual([failed.ok, failed.why], [false, '1 failed']);
    const broken = await runTests('x.wasm', browser, { runner: runnerWith(shown('Loading\nWorker error: no such module')) });
    assert.equal(broken.ok, false);
    assert.match(broken.text, /no such module[^]*could not be loaded/);
  });
}

test('a page whose tests do not begin is loaded once more', async () => {
  const twice = await runTests('x.wasm', 'chromium', { runner: runnerWith(shown('test result: ok. 2 passed; 0 failed; 0 ignored;'), shown('Loading')), begin: 500 });
  assert.deepEqual([twice.ok, twice.why], [true, '2 passed']);
});

test('a page that never ends and a runner that serves nothing are failures', async () => {
  const slow = await runTests('x.wasm', 'chromium', { runner: runnerWith(shown('test a ... ok')), patience: 1000 });
  assert.equal(slow.ok, false);
  assert.match(slow.text, /no result within 1 s/);
  const silent = await runTests('x.wasm', 'chromium', { runner: runnerWith(shown('Loading')), begin: 500 });
  assert.equal(silent.ok, false);
  assert.match(silent.text, /no test ended within 0.5 s/);
  await assert.rejects(runTests('x.wasm', 'chromium', { runner: '/bin/false' }), /ended with 1 before it served/);
});
