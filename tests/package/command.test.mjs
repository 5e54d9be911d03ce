// The command of the package against the native program: the same files, texts and exit codes.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { alreadyQuantized, convolution, dense, exact, npy, withExternalData } from '../e2e/model.mjs';
import { project } from './installed.mjs';

const native = process.env.OCTET ?? 'octet';
const command = () => join(project(), 'node_modules', '.bin', 'octet-onnx');

/** A folder with models and samples, made once. @type {string | undefined} */
let inputs;

function folder() {
  if (inputs) return inputs;
  inputs = join(project(), 'inputs');
  mkdirSync(join(inputs, 'samples'), { recursive: true });
  const files = {
    'exact.onnx': exact(),
    'conv.onnx': convolution(),
    'dense.onnx': dense({ layers: 2, side: 64 }).model,
    'quantized.onnx': alreadyQuantized(),
    'elsewhere.onnx': withExternalData('weights.bin'),
    'weights.bin': Buffer.from(new Float32Array([1, 2, 3, 4]).buffer),
    'broken.onnx': Buffer.from('nonsense'),
    'settings.yaml': 'weights:\n  type: i8\n  per_channel: true\n',
    'wrong.json': '{ "weight": 1 }',
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(inputs, name), content);
  for (let seed = 0; seed < 4; seed += 1) {
    const values = Float32Array.from({ length: 48 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1);
    writeFileSync(join(inputs, 'samples', `${seed}.npy`), npy(values, [1, 3, 4, 4]));
  }
  return inputs;
}

/**
 * Runs a command in an empty folder beside the inputs.
 *
 * @param {string} program
 * @param {string[]} args
 */
function run(program, args) {
  const place = join(folder(), 'place');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: place, encoding: 'utf8', timeout: 120_000 });
  const checksum = (/** @type {string} */ name) => createHash('sha256').update(readFileSync(join(place, name))).digest('hex');
  const files = Object.fromEntries(readdirSync(place).sort().map((name) => [name, checksum(name)]));
  return { status, stdout, stderr, files };
}

/** Commands whose results do not depend on the order of sums. */
const commands = [
  ['quantize', '../exact.onnx', '--samples', '../samples', '--out', 'out.onnx'],
  ['quantize', '../exact.onnx', '--samples', '../samples', '--out', 'out.onnx', '--threads', '1', '--save-ranges', 'ranges.json'],
  ['quantize', '../exact.onnx', '--samples', '../samples', '--config', '../settings.yaml', '--out', 'out.onnx'],
  ['quantize', '../dense.onnx', '--scheme', 'float16', '--out', 'out.onnx'],
  ['quantize', '../dense.onnx', '--scheme', 'blocks', '--stream', '--data-size', '1', '--out', 'out.onnx'],
  ['inspect', '../conv.onnx'],
  ['inspect', '../elsewhere.onnx'],
  ['inspect', '../conv.onnx', '--json'],
  ['run', '../exact.onnx', '--samples', '../samples/1.npy'],
  ['../exact.onnx', '../samples', '--out', 'out.onnx'],
  ['-q', '../exact.onnx', '../samples/1.npy', '../samples/2.npy', '--threads', '1', '--out', 'out.onnx'],
  ['inspect', '../conv.onnx', '--calib', '../samples', '--quiet'],
  ['inspect', '../conv.onnx', '--snippet'],
  ['inspect', '../elsewhere.onnx', '--snippet', 'onnxruntime-web'],
  ['completions', 'bash', '--name', 'octet-onnx'],
  ['--help'],
  ['quantize', '--help'],
  ['--version'],
];

/** Commands that are refused, each with its code. */
const refusals = [
  { code: 2, args: [] },
  { code: 2, args: ['quantise'] },
  { code: 2, args: ['../exact.onnx'] },
  { code: 3, args: ['../missing.onnx', '../samples'] },
  { code: 2, args: ['quantize', '../conv.onnx', '--frobnicate'] },
  { code: 2, args: ['quantize', '../conv.onnx', '--demo', '2', '--threads', '0', '--out', 'out.onnx'] },
  { code: 2, args: ['quantize', '../conv.onnx', '--demo', '2', '--out', '/no/such/folder/out.onnx'] },
  { code: 2, args: ['quantize', '../conv.onnx', '--demo', '2', '--config', '../wrong.json', '--out', 'out.onnx'] },
  { code: 3, args: ['inspect', '../missing.onnx'] },
  { code: 3, args: ['inspect', '../samples'] },
  { code: 3, args: ['inspect', '../broken.onnx'] },
  { code: 3, args: ['quantize', '../quantized.onnx', '--demo', '2', '--out', 'out.onnx'] },
  { code: 3, args: ['quantize', '../conv.onnx', '--samples', '../none', '--out', 'out.onnx'] },
  { code: 1, args: ['quantize', '../conv.onnx', '--scheme', 'float16', '--out', '/dev/full'] },
];

test('commands give the same files, texts and codes in Node as natively', () => {
  for (const args of commands) {
    const expected = run(native, args);
    assert.equal(expected.status, 0, `octet ${args.join(' ')}: ${expected.stderr}`);
    assert.deepEqual(run(command(), args), expected, args.join(' '));
  }
});

test('weights learn with values in a file, and go on from a journal', () => {
  const learn = (/** @type {number} */ level) => {
    const settings = { weights: { type: 'i4' }, finetune: { algorithm: 'adaround', num_iterations: 50, mem_opt_level: level } };
    return ['quantize', '../dense.onnx', '--samples', '../rows', '--config', JSON.stringify(settings), '--out', 'out.onnx', '--journal', `../learned-${level}.journal`];
  };
  mkdirSync(join(folder(), 'rows'), { recursive: true });
  for (let seed = 0; seed < 4; seed += 1) {
    const values = Float32Array.from({ length: 64 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1);
    writeFileSync(join(folder(), 'rows', `${seed}.npy`), npy(values, [1, 64]));
  }
  const [memory, file, again] = [1, 2, 2].map((level) => run(command(), learn(level)));
  for (const { status, stderr } of [memory, file, again]) assert.equal(status, 0, stderr);
  assert.equal(file.files['out.onnx'], memory.files['out.onnx']);
  assert.equal(again.files['out.onnx'], memory.files['out.onnx']);
  assert.doesNotMatch(file.stderr, /continues after/);
  assert.match(again.stderr, /continues after 2 layers that an earlier run has learned/);
});

test('refused commands give the same sentence and code in Node as natively', () => {
  for (const { code, args } of refusals) {
    const expected = run(native, args);
    assert.equal(expected.status, code, `octet ${args.join(' ')}: ${expected.stderr}`);
    assert.deepEqual(run(command(), args), expected, args.join(' '));
  }
});

test('the doctor checks the build for Node, and finds what the native program finds in a model', () => {
  const found = (/** @type {string} */ program) => JSON.parse(run(program, ['doctor', '../conv.onnx', '--json']).stdout);
  const [native_, node] = [found(native), found(command())];
  assert.deepEqual([node.system, node.selfCheck.passed, node.selfCheck.kernels !== ''], ['node', true, true]);
  assert.ok(node.freeMemory > 0 && node.disks[0].free > 0, JSON.stringify(node));
  assert.deepEqual([node.model, node.threads, node.octet], [native_.model, native_.threads, native_.octet]);
});

test('a quantized model compares with its float model as natively', () => {
  const quantized = join(folder(), 'result.onnx'); // outside of the folder that is emptied
  assert.equal(run(native, ['quantize', '../exact.onnx', '--samples', '../samples', '--out', quantized]).status, 0);
  const args = ['compare', '../exact.onnx', quantized, '--samples', '../samples'];
  assert.deepEqual(run(command(), args), run(native, args));
});

test('a result is verified as natively, also one that the native program made', () => {
  const made = join(folder(), 'made');
  const out = ['--out', `${made}.onnx`, '--report', `${made}.yaml`];
  assert.equal(run(native, ['quantize', '../exact.onnx', '--samples', '../samples', ...out]).status, 0);
  const args = ['verify', '../exact.onnx', `${made}.onnx`, '--samples', '../samples', '--proof', `${made}.yaml`];
  const expected = run(native, args);
  assert.equal(expected.status, 0, expected.stderr);
  assert.deepEqual(run(command(), args), expected);
  const others = ['verify', '../exact.onnx', `${made}.onnx`, '--samples', '../samples', '--activations', 'i8'];
  assert.equal(run(native, others).status, 4);
  assert.deepEqual(run(command(), others), run(native, others));
});

test('a reader that closes the pipe early is no failure', async () => {
  const child = spawn(command(), ['quantize', '--help'], { cwd: folder(), stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  const code = await new Promise((ended) => child.once('close', ended));
  assert.equal(code, 0);
});

test('an existing result stays when a command is refused', () => {
  const kept = join(folder(), 'kept.onnx');
  writeFileSync(kept, 'kept');
  assert.equal(run(command(), ['quantize', '../broken.onnx', '--demo', '1', '--out', kept]).status, 3);
  assert.equal(readFileSync(kept, 'utf8'), 'kept');
  assert.ok(!existsSync(`${kept}.part`));
});
