// Builds print nothing if and only if there are no problems.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNews } from '../../scripts/cargo.mjs';

const atomics = 'unstable feature specified for `-Ctarget-feature`: `atomics`';

test('one warning is left out, every other and every error is shown', () => {
  /** @type {[string, string, boolean][]} */
  const cases = [
    ['warning', atomics, false],
    ['warning', '1 warning emitted', false],
    ['warning', '12 warnings emitted', false],
    ['warning', atomics.replace('atomics', 'simd256'), true],
    ['warning', 'unused variable: `x`', true],
    ['error', atomics, true],
    ['error', 'mismatched types', true],
  ];
  for (const [level, message, news] of cases) assert.equal(isNews({ level, message, rendered: null }), news, message);
});
