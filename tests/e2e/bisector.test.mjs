// The search of the first wrong node, on six models with five drawn damages each. A double of the
// runtime damages one operator.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { branches, dense, depthwise, detector, encoder } from './model.mjs';
import { checked, doubled, named, quantizedNodes, samplesOf } from './real-runtime.mjs';
import { corpus, inBrowsers } from './walk.mjs';

/** Damages of a node, by the seed. */
const damages = [{ operator: 'Mul', value: -1 }, { operator: 'Mul', value: 0 }, { operator: 'Add', value: 0.4 }, { operator: 'Mul', value: 0.7 }, { operator: 'Mul', value: 1.6 }];

/** Words of the page where the outputs of both runtimes agree. */
const agrees = /loads, and its answers are those of Octet/;

inBrowsers('the search of the first wrong node', (visit) => {
  const cases = /** @type {const} */ ([
    ['a detector', () => [detector(), samplesOf([1, 3, 64, 64])]],
    ['an encoder', () => [encoder(), samplesOf([1, 24])]],
    ['dense layers', () => [dense({ layers: 6, side: 48 }).model, samplesOf([1, 48])]],
    ['a chain of convolutions', () => [depthwise({ layers: 6, channels: 8, size: 16, kernel: 3, dilation: 1 }), samplesOf([1, 8, 16, 16])]],
    ['branches of unequal size', () => [branches(), samplesOf([1, 3, 16, 16])]],
    // Noise, as the answers to real lines of text are too sure to show a damage.
    ['ppocr_cls', () => [readFileSync(join(corpus, 'models', 'ppocr_cls.onnx')), samplesOf([1, 3, 48, 192]).slice(0, 2)]],
  ]);
  for (const [at, [name, read]] of cases.entries()) {
    test(`names the drawn node of ${name} in five of five cases, and none where nothing is damaged`, async () => {
      const [model, samples] = /** @type {[Buffer, Buffer[]]} */ (read());
      const { folder, damage } = doubled(name);
      await visit({ mounts: { '/pkg/': folder } }, async (visit) => {
        await visit.quantized(model, samples);
        await visit.judged();
        const nodes = quantizedNodes(await visit.downloaded('.onnx'));
        await visit.tab.click('#tab-runtime');
        await checked(visit);
        assert.match(await visit.text('#runtime-summary'), agrees);
        /** @type {unknown[]} */
        const found = [];
        const unseen = [];
        for (let seed = 0; found.length < 5 && unseen.length < 4; seed += 1) {
          // A step through the nodes that meets all parts of the model.
          const node = nodes[((7 * at + seed) * 2654435761 % 2 ** 32) % nodes.length];
          damage({ node: node.name, ...damages[seed % damages.length] });
          await checked(visit);
          const right = { seed, operator: node.operator, node: node.name };
          // A damage that no output shows is no case: the answers are right.
          if (agrees.test(await visit.text('#runtime-summary'))) unseen.push(right);
          else found.push({ ...right, found: await named(visit) });
        }
        assert.deepEqual([found.length, found.filter((/** @type {any} */ one) => one.found !== one.node)], [5, []], `${name}: ${JSON.stringify({ found, unseen })}`);
      });
    });
  }
}, ['chromium']);
