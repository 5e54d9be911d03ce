// The cold start of the npm package's command in Node: the time to the first output. Rows for
// scripts/bench.mjs.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from './median.mjs';

/** @typedef {import('./bench-models.mjs').Record_} Record_ */

const rounds = 7;

/** The most milliseconds to the first output. */
const patience = 500;

/**
 * Milliseconds to the first output of a program.
 *
 * @param {string[]} args of Node
 */
async function firstOutput(args) {
  const began = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data')]);
  const took = performance.now() - began;
  if (child.exitCode === null) {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  return took;
}

/** @param {{ corpus: string }} options @param {Record_} record */
export async function benchNode({ corpus }, record) {
  const scratch = mkdtempSync(join(tmpdir(), 'octet-bench-node-'));
  try {
    execFileSync(process.execPath, [join(dirname(fileURLToPath(import.meta.url)), 'package.mjs'), '--out', scratch]);
    const command = join(scratch, 'octet-onnx', 'command', 'octet.js');
    const model = join(corpus, 'models', 'squeezenet.onnx');
    const quantize = ['quantize', model, '--samples', join(corpus, 'samples', 'squeezenet'), '--out', join(scratch, 'out.onnx')];
    const compare = ['compare', model, model, '--samples', join(corpus, 'samples', 'squeezenet')];
    for (const args of [['--version'], ['--help'], ['inspect', model], quantize, compare]) {
      const name = args[0] ?? '';
      const times = { command: /** @type {number[]} */ ([]), bare: /** @type {number[]} */ ([]) };
      for (let round = 0; round < rounds; round += 1) {
        times.command.push(await firstOutput([command, ...args]));
        times.bare.push(await firstOutput(['--eval', 'console.log(0)']));
      }
      const [took, bare] = [median(times.command), median(times.bare)];
      record('node', `${name}: first output`, took, 'ms', { peer: 'Node alone', peer_value: bare, ratio: took / bare, target: `at most ${patience} ms`, holds: took <= patience });
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
