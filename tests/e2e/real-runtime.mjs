// The check in the real runtime, as its tests use it: one check, a double of the runtime that is wrong
// on purpose, and an older release.

import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { npy } from './model.mjs';
import { fields, text } from './protobuf.mjs';
import { scratch } from './scratch.mjs';

/** @import { Visit } from './walk.mjs' */

/** A damage of a node: an operator with a number follows it. @typedef {{ node: string, operator: string, value: number }} Damage */

/** Samples of some shape that differ. @param {number[]} shape */
export const samplesOf = (shape) => [0, 1, 2, 3].map((index) => {
  const size = shape.reduce((product, side) => product * side, 1);
  return npy(Float32Array.from({ length: size }, (_, i) => (((i + index) * 7) % 19) / 9 - 1), shape);
});

/** Checks the result that is on the page. @param {Visit} visit */
export async function checked({ tab }) {
  await tab.waitForSelector('#runtime-start');
  await tab.click('#runtime-start');
  await tab.waitForSelector('#runtime-stop:not([hidden])');
  await tab.waitForSelector('#runtime-stop[hidden]');
}

/** The node that the last check named, or an error. @param {Visit} visit */
export const named = ({ tab }) => tab.$eval('#runtime-culprit', (found) => /** @type {HTMLElement} */ (found).dataset.node).catch(String);

/** Links the entries of a folder into another, but for some. @param {string} from @param {string} to @param {string[]} except */
function link(from, to, except) {
  for (const name of readdirSync(from)) if (!except.includes(name)) symlinkSync(join(from, name), join(to, name));
}

/**
 * The built packages with an empty folder in place of the runtime.
 *
 * @param {string} name
 * @returns {{ folder: string, built: string, inside: string }} the packages, the runtime that was built, the empty folder
 */
function withoutRuntime(name) {
  const folder = mkdtempSync(join(scratch, `${name} `));
  const inside = join(folder, 'vendor', 'onnxruntime-web');
  mkdirSync(inside, { recursive: true });
  const built = resolve('pkg');
  link(built, folder, ['vendor']);
  link(join(built, 'vendor'), join(folder, 'vendor'), ['onnxruntime-web']);
  return { folder, built: join(built, 'vendor', 'onnxruntime-web'), inside };
}

/**
 * The built packages with the double in place of the runtime. `damage` sets what it damages: nothing
 * at first.
 *
 * @param {string} name
 * @param {string} [module] of the runtime
 */
export function doubled(name, module = 'ort.wasm.min.mjs') {
  const { folder, built, inside } = withoutRuntime(`doubled ${name}`);
  link(built, inside, [module]);
  copyFileSync(join(built, module), join(inside, 'real.mjs'));
  copyFileSync(new URL('protobuf.mjs', import.meta.url), join(inside, 'protobuf.mjs'));
  const double = readFileSync(new URL('damaged-runtime.mjs', import.meta.url), 'utf8');
  const damage = (/** @type {Damage} */ what) => writeFileSync(join(inside, module), double.replace('DAMAGE', () => JSON.stringify(what)));
  damage({ node: 'nobody', operator: 'Mul', value: 0 });
  return { folder, damage };
}

/** The built packages with an older release of the runtime, whose wasm had another name. */
export function older() {
  const { folder, inside } = withoutRuntime('older');
  const release = resolve('node_modules', 'onnxruntime-web-older', 'dist');
  for (const name of ['ort.wasm.min.mjs', 'ort.webgpu.min.mjs', ...['', '.jsep'].flatMap((kind) => ['mjs', 'wasm'].map((ending) => `ort-wasm-simd-threaded${kind}.${ending}`))]) copyFileSync(join(release, name), join(inside, name));
  copyFileSync(join(release, 'ort-wasm-simd-threaded.jsep.wasm'), join(inside, 'ort-wasm-simd-threaded.asyncify.wasm'));
  return folder;
}

/**
 * Nodes of a quantized model with a float result that is quantized: those whose damage is one of an
 * operator.
 *
 * @param {Uint8Array} file
 */
export function quantizedNodes(file) {
  const graph = fields(file).find(({ number }) => number === 7)?.content ?? new Uint8Array();
  const nodes = fields(graph).filter(({ number }) => number === 1).map(({ content }) => {
    const texts = (/** @type {number} */ wanted) => fields(content).filter(({ number }) => number === wanted).map((one) => text(one.content));
    return { inputs: texts(1), outputs: texts(2), name: texts(3)[0] ?? '', operator: texts(4)[0] };
  });
  const rounded = new Set(nodes.filter(({ operator }) => operator === 'QuantizeLinear').map(({ inputs }) => inputs[0]));
  return nodes.filter(({ name, outputs, operator }) => name && rounded.has(outputs[0]) && operator !== 'DequantizeLinear');
}
