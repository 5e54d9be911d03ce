// The steps of action.yml, run as a runner would: with bash, the inputs in the environment, and the
// package from its tarball.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { exact, npy } from '../e2e/model.mjs';
import { checkout, project, tarball } from './installed.mjs';

const text = readFileSync(join(checkout, 'action.yml'), 'utf8');

/** Default of each input; none where an input is required. */
function defaults() {
  const inputs = text.slice(text.indexOf('\ninputs:'), text.indexOf('\noutputs:'));
  const blocks = inputs.split(/\n {2}(?=[a-z])/).slice(1);
  return Object.fromEntries(blocks.map((block) => {
    const found = /\n {4}default: (.*)/.exec(block)?.[1] ?? '';
    return [block.slice(0, block.indexOf(':')), found.replace(/^''$/, '')];
  }));
}

/** The steps: their shell, command and environment. */
function steps() {
  const blocks = text.slice(text.indexOf('\n  steps:')).split(/\n {4}- /).slice(1);
  return blocks.map((block) => ({
    shell: /\n {6}shell: (.*)/.exec(block)?.[1],
    run: /\n {6}run: (.*)/.exec(block)?.[1] ?? '',
    env: [...block.matchAll(/\n {8}(\w+): \$\{\{ inputs\.([\w-]+) \}\}/g)].map(([, name, input]) => [name, input]),
  }));
}

/**
 * Runs the action in a folder.
 *
 * @param {string} folder
 * @param {Record<string, string>} given
 */
function run(folder, given) {
  const inputs = { ...defaults(), package: tarball(), ...given };
  for (const input of Object.keys(given)) assert.ok(input in defaults(), `action.yml has no input ${input}`);
  const files = { GITHUB_STEP_SUMMARY: join(folder, 'summary.md'), GITHUB_OUTPUT: join(folder, 'output.txt') };
  for (const file of Object.values(files)) writeFileSync(file, '');
  let last = { status: /** @type {number | null} */ (0), stderr: '' };
  for (const step of steps()) {
    assert.equal(step.shell, 'bash');
    const env = Object.fromEntries(step.env.map(([name, input]) => [name, inputs[/** @type {keyof typeof inputs} */ (input)] ?? '']));
    last = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step.run], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, npm_config_offline: 'true', GITHUB_ACTION_PATH: checkout, ...files, ...env },
      timeout: 120_000,
    });
    if (last.status !== 0) break;
  }
  return { ...last, summary: readFileSync(files.GITHUB_STEP_SUMMARY, 'utf8'), output: readFileSync(files.GITHUB_OUTPUT, 'utf8') };
}

/** A folder like a repository with a model and samples. */
function repository() {
  const folder = mkdtempSync(join(project(), 'action-'));
  writeFileSync(join(folder, 'model.onnx'), exact());
  mkdirSync(join(folder, 'samples'));
  for (let seed = 0; seed < 4; seed += 1) {
    const values = Float32Array.from({ length: 48 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1);
    writeFileSync(join(folder, 'samples', `${seed}.npy`), npy(values, [1, 3, 4, 4]));
  }
  return folder;
}

const asked = { model: 'model.onnx', samples: 'samples' };

test('the action quantizes a model, and writes the verdict, the gates and the worst layers', () => {
  const folder = repository();
  const done = run(folder, { ...asked, settings: '{"weights":{"type":"i8"}}', 'min-sqnr': '15', 'min-layer-sqnr': '10', require: 'look' });
  assert.equal(done.status, 0, done.stderr);
  assert.ok(existsSync(join(folder, 'octet-quantized.onnx')));
  assert.match(done.output, /^quantized=octet-quantized\.onnx\nverdict=(ship|look)\nbytes=\d+\n$/);
  for (const part of ['**Verdict: ', '| error | holds |', '| layers | holds |', '### The worst layers', ' Conv |']) {
    assert.ok(done.summary.includes(part), `${part} is not in: ${done.summary}`);
  }
  rmSync(folder, { recursive: true });
});

test('a gate that does not hold fails with code 4, after the summary', () => {
  const folder = repository();
  assert.equal(run(folder, asked).status, 0);
  const done = run(folder, { ...asked, quantized: 'octet-quantized.onnx', 'max-size': '1%', 'min-sqnr': '150', 'min-answers': '99' });
  assert.equal(done.status, 4, done.stderr);
  for (const gate of ['size', 'error', 'answers']) {
    assert.ok(done.summary.includes(`| ${gate} | **fails** |`), done.summary);
    assert.ok(done.stderr.includes(`${gate}: `), done.stderr);
  }
  assert.match(done.stderr, /^::error title=Octet::/m);
  rmSync(folder, { recursive: true });
});

test('an input that is wrong fails with the line and the code of the command', () => {
  const folder = repository();
  const missing = run(folder, { ...asked, model: 'none.onnx' });
  assert.equal(missing.status, 3, missing.stderr);
  assert.match(missing.stderr, /::error title=Octet::.*none\.onnx/);
  assert.equal(run(folder, { ...asked, samples: '' }).status, 2);
  rmSync(folder, { recursive: true });
});
