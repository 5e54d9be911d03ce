// The search of the first wrong node, with runtimes made of numbers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstWrongNode } from '../../www/features/runtime/bisect.js';

/** @import { GraphView, OutputTensor } from '../../www/types.js' */

/** A tensor with noise of so many decibels. @param {string} name @param {number} decibels @returns {OutputTensor} */
function noisy(name, decibels) {
  const noise = 10 ** (-decibels / 20);
  return { name, element: 'float32', shape: [64], data: Float32Array.from({ length: 64 }, (_, at) => (at % 2 ? 1 : -1) * (1 + (at % 4 < 2 ? noise : -noise))) };
}

/** A chain of nodes, and the noise of their outputs in the whole model. @param {number[]} noise @param {number[]} [wrong] places of wrong nodes */
function chain(noise, wrong = []) {
  const value = (/** @type {number} */ at) => (at < 0 ? 'x' : `v${at}`);
  const nodes = noise.map((_, at) => ({ name: `n${at}`, operator: 'Exp', inputs: [value(at - 1)], outputs: [value(at)] }));
  const graph = /** @type {GraphView} */ (/** @type {unknown} */ ({ nodes, inputs: ['x'], outputs: [value(noise.length - 1)] }));
  const place = (/** @type {string} */ name) => Number(name.slice(1));
  const pairs = (/** @type {string[]} */ names, /** @type {(name: string) => number} */ decibels) => new Map(names.map((name) => [name, { ours: noisy(name, 400), theirs: noisy(name, decibels(name)) }]));
  let runs = 0;
  const runtimes = {
    watch: async (/** @type {string[]} */ names) => pairs(names, (name) => noise[place(name)]),
    alone: async (/** @type {OutputTensor[]} */ inputs, /** @type {string[]} */ names) => {
      runs += 1;
      // Given what the runtime computed, a right node gets what the runtime gets.
      const theirs = inputs.some(({ name, data }) => name !== 'x' && data[0] !== noisy(name, 400).data[0]);
      return new Map(names.map((name) => [name, {
        ours: noisy(name, theirs && !wrong.includes(place(name)) ? noise[place(name)] : 400),
        theirs: noisy(name, wrong.includes(place(name)) ? noise[place(name)] : 400),
      }]));
    },
  };
  return { search: () => firstWrongNode(graph, value(noise.length - 1), new Map([['x', noisy('x', 400)]]), runtimes), runs: () => runs };
}

test('a wrong node is named, though others make its difference larger', async () => {
  const found = await chain([200, 200, 30, 20, 10], [2]).search();
  assert.deepEqual([found?.node, found?.alone], ['n2', true]);
});

test('rounding that right nodes make larger is no wrong node', async () => {
  const { search, runs } = chain([120, 100, 80, 61, 45, 30, 15]);
  assert.equal(await search(), null);
  assert.ok(runs() < 20, `${runs()} runs`);
});

test('a long way of growing differences ends with the same answer', async () => {
  const noise = Array.from({ length: 100 }, (_, at) => 70 - at * 0.6);
  assert.equal(await chain(noise).search(), null);
});
