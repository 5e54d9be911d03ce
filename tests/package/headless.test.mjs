// The examples of docs/npm.md: tests in a headless browser, with Puppeteer and with Playwright. They
// run as a user's would: in a folder of their own, with the package from its tarball.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { encoder, npy } from '../e2e/model.mjs';
import { checkout, project, write } from './installed.mjs';

/** Values between −1 and 1 that repeat after 19, another start for each sample. @param {number} seed */
const values = (seed) => Float32Array.from({ length: 24 }, (_, at) => ((at * 7 + seed * 5) % 19) / 9 - 1);

before(() => {
  cpSync(join(checkout, 'examples', 'headless'), join(project(), 'headless'), { recursive: true });
  for (let seed = 0; seed < 8; seed += 1) write(`headless/samples/${seed}.npy`, npy(values(seed), [1, 24]));
  for (const name of ['puppeteer-core', 'playwright-core']) symlinkSync(join(checkout, 'node_modules', name), join(project(), 'node_modules', name), 'dir');
});

/** Runs an example on a model. @param {string} file @param {Uint8Array} model */
function run(file, model) {
  write('headless/model.onnx', model);
  const env = /** @type {NodeJS.ProcessEnv} */ ({ ...process.env, CHROMIUM: process.env.OCTET_CHROMIUM });
  delete env.NODE_TEST_CONTEXT; // else it reports to this run
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--test', file], { cwd: join(project(), 'headless'), env, encoding: 'utf8', timeout: 240_000 });
  return { status, said: stdout + stderr };
}

for (const tool of ['puppeteer', 'playwright']) {
  test(`the example with ${tool} passes a good model, and fails one that is refused`, () => {
    const good = run(`${tool}.test.mjs`, encoder());
    assert.equal(good.status, 0, good.said);
    assert.match(good.said, /^(#|ℹ) pass 1$/m);
    const damaged = run(`${tool}.test.mjs`, encoder().subarray(0, 900));
    assert.equal(damaged.status, 1, damaged.said);
    assert.match(damaged.said, /the file was cut short/);
  });
}
