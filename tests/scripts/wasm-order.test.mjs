// The order of functions in a wasm module (scripts/wasm-order.mjs).

import assert from 'node:assert/strict';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import binaryen from 'binaryen';
import { ordered, similar } from '../../scripts/wasm-order.mjs';

/** Pseudorandom numbers below a limit. @param {number} seed */
function random(seed) {
  let state = seed;
  return (/** @type {number} */ limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

test('functions that share code come side by side, the others stay in order', () => {
  const draw = random(1);
  const bytes = (/** @type {number} */ count) => Uint8Array.from({ length: count }, () => draw(256));
  const [a, b, c] = [bytes(400), bytes(400), bytes(400)];
  const like = (/** @type {Uint8Array} */ body, /** @type {number} */ at) => Uint8Array.from(body, (byte, index) => (index === at ? byte ^ 1 : byte));
  assert.deepEqual(similar([a, b, c, like(b, 30), like(a, 200), like(b, 390)]), [0, 4, 1, 3, 5, 2]);
});

test('functions shorter than a piece are kept', () => {
  const short = Uint8Array.of(0, 11);
  assert.deepEqual(similar([short, short, Uint8Array.of(0, 1, 11)]), [0, 1, 2]);
});

test('a module computes the same afterwards, and is smaller', () => {
  // Two families of functions that alternate; each function calls the next one of its family.
  const count = 1000;
  const draw = random(2);
  const family = (/** @type {number} */ kind) => Array.from({ length: 40 }, () => `local.get $x i32.const ${1000 + draw(1e6)} ${kind % 2 ? 'i32.add' : 'i32.xor'} local.set $x`).join(' ');
  const families = Array.from({ length: 250 }, (_, kind) => family(kind));
  const code = Array.from({ length: count }, (_, index) => {
    const next = index + families.length;
    const call = next < count ? `call $f${next}` : '';
    return `(func $f${index} (param $x i32) (result i32) ${families[index % families.length]} local.get $x i32.const ${index} i32.add ${call})`;
  });
  const exported = [0, 1, 7, 249].map((index) => `(export "f${index}" (func $f${index}))`);
  const twins = ['one', 'other'].map((name) => `(func $${name} (export "${name}") (result i32) i32.const 77)`);
  const table = '(table 2 funcref) (elem (i32.const 0) $one $f3) (type $number (func (result i32))) (func (export "table") (result i32) (call_indirect (type $number) (i32.const 0)))';
  const text = `(module (import "host" "double" (func $double (param i32) (result i32))) (import "host" "half" (func $half (param i32) (result i32))) (import "host" "memory" (memory 1)) ${code.join('\n')} ${twins.join(' ')} ${exported.join(' ')} ${table}
    (func (export "imported") (result i32) i32.const 42 call $half call $double))`;
  const module = binaryen.parseText(text);
  const before = module.emitBinary();
  const after = ordered(before);
  assert.ok(WebAssembly.validate(new Uint8Array(after)));
  const host = { host: { double: (/** @type {number} */ value) => value * 2, half: (/** @type {number} */ value) => value / 2, memory: new WebAssembly.Memory({ initial: 1 }) } };
  const [one, other] = [before, after].map((bytes) => {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes)), host);
    return /** @type {Record<string, (value?: number) => number>} */ (exports);
  });
  assert.deepEqual(Object.keys(other), Object.keys(one));
  for (const name of ['f0', 'f1', 'f7', 'f249']) assert.equal(other[name](5), one[name](5), name);
  for (const name of ['one', 'other', 'table']) assert.equal(other[name](), 77, name);
  assert.equal(other.imported(), 42);
  const sizes = [before, after].map((bytes) => gzipSync(bytes, { level: 9 }).length);
  assert.ok(sizes[1] < 0.5 * sizes[0], `${sizes}`);
  assert.deepEqual(ordered(before), after, 'the same bytes each time');
});
