// The choice among preprocessings by labels.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byChance, exchanged, judged, named, ranked, spread, usualWays } from '../../www/features/data/preprocessings.js';

const presets = {
  imagenet: { order: 'rgb', scale: 1 / 255, mean: [0.4, 0.5, 0.6], std: [1, 2, 3] },
  raw: { order: 'rgb', scale: 1, mean: [0, 0, 0], std: [1, 1, 1] },
};
/** @param {string} name @param {number} right @param {number} share */
const tried = (name, right, share) => ({ name, right, of: 10, share });

test('the current way comes first and only once, with the size as it is, in each layout', () => {
  const current = { preset: 'raw', image: { height: 64, order: 'rgb' } };
  assert.deepEqual(usualWays(presets, current, []).map(({ preset, image }) => [preset, image.height]), [['raw', 64], ['imagenet', 64]]);
  const layouts = usualWays(presets, { preset: 'raw', image: { layout: 'nchw' } }, ['nchw', 'nhwc']);
  assert.deepEqual(layouts.map(({ preset, image }) => `${preset} ${image.layout}`), ['raw nchw', 'imagenet nchw', 'imagenet nhwc', 'raw nhwc']);
});

test('exchanged channels take their means with them, and are named', () => {
  const way = exchanged({ preset: 'imagenet', image: {} }, presets);
  assert.deepEqual(way.image, { order: 'bgr', mean: [0.6, 0.5, 0.4], std: [3, 2, 1] });
  assert.equal(named(way, presets), 'ImageNet (PyTorch, timm), BGR');
  assert.equal(exchanged(way, presets).image.order, 'rgb');
  assert.equal(named({ preset: 'raw', image: { layout: 'nhwc' } }, presets), '0 to 255, unscaled, NHWC');
});

test('pictures are taken from each class in turn', () => {
  assert.deepEqual(spread(['a1', 'a2', 'a3', 'b1', 'c1', 'c2'], (one) => one[0], 5), ['a1', 'b1', 'c1', 'a2', 'c2']);
  assert.deepEqual(spread(['a1'], (one) => one[0], 5), ['a1']);
});

test('more right answers win; among equals the current way, then the surer one', () => {
  const names = (/** @type {ReturnType<typeof tried>[]} */ ...list) => ranked(list).map(({ name }) => name);
  assert.deepEqual(names(tried('now', 5, 1), tried('b', 7, 2), tried('c', 7, 3)), ['c', 'b', 'now']);
  assert.deepEqual(names(tried('now', 7, 1), tried('b', 7, 9)), ['now', 'b']);
});

test('an answer is judged by its scores, however large, and none of them counts as right', () => {
  assert.equal(judged([1e4, 2e4, 0], 3, 1).right, true);
  assert.ok(judged([0, 0], 2, 1).share === 0.5);
  assert.deepEqual(judged([NaN, NaN], 2, 1), { right: false, share: 0 });
});

test('as many right answers as by guessing tell nothing', () => {
  assert.equal(byChance({ right: 8, of: 20 }, 4), true);
  assert.equal(byChance({ right: 12, of: 20 }, 4), false);
  assert.equal(byChance({ right: 6, of: 8 }, 2), true);
});
