// In Node: the API in ten lines, in the main thread and in a worker thread; the declarations; the
// contents and sizes of the tarball.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { dense } from '../e2e/model.mjs';
import { checkout, inNode, project, runModule, write } from './installed.mjs';
import { model, program } from './programs.mjs';

const installed = () => join(project(), 'node_modules', 'octet-onnx');
const load = () => `(await import('node:fs')).readFileSync(${JSON.stringify(write('exact.onnx', model))})`;

/** @param {string} text */
function checked(text) {
  const result = JSON.parse(text);
  assert.deepEqual(result.shape, [1, 2, 4, 4]);
  assert.equal(result.compared, 4);
  assert.equal(result.refused, 'model');
  assert.ok(result.said);
  assert.ok(result.y.some((/** @type {number} */ value) => value !== 0));
  return result;
}

test('in Node, ten lines quantize a model and run it, and the process ends by itself', () => {
  checked(inNode());
});

test('a worker thread of Node gives the same bytes as the main thread', () => {
  write('inner.mjs', program('octet-onnx', '(await import("node:worker_threads")).parentPort.postMessage(result);', load()));
  const outer = 'import { Worker } from "node:worker_threads";\nnew Worker(new URL("./inner.mjs", import.meta.url)).on("message", (result) => console.log(JSON.stringify(result)));\n';
  const { status, stdout, stderr } = runModule('outer.mjs', outer);
  assert.equal(status, 0, stderr);
  assert.deepEqual(checked(stdout), checked(inNode()));
});

test('one thread gives the same bytes as several', () => {
  const text = program('octet-onnx', 'console.log(JSON.stringify(result));', load()).replace('const model =', 'await startEngine({ threads: 1 });\nconst model =');
  const { status, stdout, stderr } = runModule('threads.mjs', text.replace('stopEngine }', 'startEngine, stopEngine }'));
  assert.equal(status, 0, stderr);
  assert.deepEqual(checked(stdout), checked(inNode()));
});

test('what settings need from the samples is collected: extra passes, and learned weights', () => {
  const text = `
    import { readFileSync } from 'node:fs';
    import { openModel, stopEngine } from 'octet-onnx';
    const model = await openModel(readFileSync(${JSON.stringify(write('dense.onnx', dense({ layers: 2, side: 64 }).model))}));
    const [{ name }] = model.summary.inputs;
    const data = (seed) => Float32Array.from({ length: 64 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1);
    const samples = [0, 1, 2, 3].map((seed) => ({ [name]: { shape: [1, 64], data: data(seed) } }));
    const finetune = (level) => ({ weights: { type: 'i4' }, finetune: { num_iterations: 5, mem_opt_level: level } });
    const { report: learned } = await model.quantize(finetune(1), samples);
    const { report: ranges } = await model.quantize({ method: 'ort-entropy' }, samples);
    const { report: blocks } = await model.quantize({ scheme: 'blocks', blocks: { method: 'gptq' } }, samples);
    const noFile = await model.quantize(finetune(2), samples).catch((error) => error.message);
    console.log(JSON.stringify({ learned, ranges, blocks, noFile }));
    await stopEngine();`;
  const { status, stdout, stderr } = runModule('settings.mjs', text);
  assert.equal(status, 0, stderr.slice(-2000));
  const { learned, ranges, blocks, noFile } = JSON.parse(stdout);
  assert.match(learned, /tuning:/);
  assert.match(ranges, /ort-entropy/);
  assert.match(blocks, /gptq/);
  assert.match(noFile, /can't be stored in a file: there is no storage here; free some space, or set mem_opt_level to 1/);
});

test('the runtime entry runs a model many times and keeps no samples of it', () => {
  const text = `
    import { createSession, stopEngine } from 'octet-onnx/runtime';
    const session = await createSession(${load()});
    const results = [];
    for (let seed = 0; seed < 3; seed += 1) {
      const { y } = await session.run([{ name: 'x', shape: [1, 3, 4, 4], data: new Float32Array(48).fill(seed / 8) }]);
      results.push([...y.data]);
    }
    const missing = await session.run({}).catch((error) => error.message);
    await session.close();
    const closed = await session.run({}).catch((error) => error.kind);
    console.log(JSON.stringify({ results, missing, closed, ms: session.ms, inputs: session.card.inputs.map(({ name }) => name) }));
    await stopEngine();`;
  const { status, stdout, stderr } = runModule('runtime.mjs', text);
  assert.equal(status, 0, stderr);
  const { results, missing, closed, ms, inputs } = JSON.parse(stdout);
  assert.ok(ms > 0, `${ms} ms in the engine`);
  assert.deepEqual(inputs, ['x']);
  assert.notDeepEqual(results[0], results[2]);
  assert.match(missing, /no tensor for the input `x`/);
  assert.equal(closed, 'order');
});

test('a program in TypeScript sees the types of the settings and results', () => {
  const options = { compilerOptions: { module: 'nodenext', target: 'es2023', strict: true, noEmit: true, skipLibCheck: false, lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] } };
  write('tsconfig.json', JSON.stringify({ ...options, files: ['typed.ts'] }));
  write('typed.ts', `import { openModel, type OpenModel } from 'octet-onnx';
    import { createSession } from 'octet-onnx/runtime';
    const model: OpenModel = await openModel(new Uint8Array(1));
    const { model: bytes, report } = await model.quantize({ activations: { type: 'u8' } }, [{ x: { shape: [1], data: new Float32Array(1) } }]);
    const text: string = report;
    const session = await createSession(bytes);
    const outputs = await session.run({ x: { shape: [1], data: new Float32Array(1) } });
    const shape: number[] = outputs.y.shape;
    // @ts-expect-error there is no such type of integers
    await model.quantize({ activations: { type: 'u9' } });
    console.log(text, shape);\n`);
  execFileSync(join(checkout, 'node_modules', '.bin', 'tsc'), ['--project', join(project(), 'tsconfig.json')], { stdio: 'inherit' });
});

test('what one variant needs is at most 4 MB gzipped', () => {
  const size = (/** @type {string} */ name) => gzipSync(readFileSync(join(installed(), name)), { level: 9 }).length;
  const scripts = ['dist/index.js', 'dist/worker.js'];
  for (const variant of ['threads', 'baseline']) {
    const bytes = [...scripts, `dist/${variant}.wasm`].reduce((sum, name) => sum + size(name), 0);
    assert.ok(bytes < 4_000_000, `${variant}: ${bytes} bytes`);
  }
  const command = ['command/octet.js', 'command/worker.js', 'command/command.wasm'].reduce((sum, name) => sum + size(name), 0);
  assert.ok(command < 4_000_000, `the command line: ${command} bytes`);
});

test('every file that the manifest names is in the package', () => {
  const { exports, bin, types, sideEffects } = JSON.parse(readFileSync(join(installed(), 'package.json'), 'utf8'));
  const targets = /** @type {(of: any) => string[]} */ ((of) => (typeof of === 'string' ? [of] : Object.values(of).flatMap(targets)));
  const named = [...targets(exports), ...Object.values(bin), types].map((path) => String(path).replace('./', ''));
  for (const path of named) assert.ok(statSync(join(installed(), path)).isFile(), path);
  const worker = sideEffects.filter((/** @type {string} */ path) => !path.includes('*'));
  for (const path of worker) assert.ok(statSync(join(installed(), path)).isFile(), path);
  assert.ok(readdirSync(installed()).includes('README.md'));
});
