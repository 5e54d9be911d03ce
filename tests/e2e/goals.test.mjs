// Goals in place of schemes: three without samples, with forecast sizes; with samples a budget, too.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { convolution, dense, npy } from './model.mjs';
import { inBrowsers, out } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** @param {Visit} visit */
const pressed = ({ tab }) => tab.$$eval('.goal[aria-pressed=true]', (cards) => cards.map(({ id }) => id));
/** @param {Visit} visit @param {string} selector */
const click = ({ tab }, selector) => tab.$eval(selector, (button) => /** @type {HTMLElement} */ (button).click());
/** The size on a card, in bytes. @param {Visit} visit @param {string} name */
async function size(visit, name) {
  const [, number, unit] = /about ([\d.]+) (B|kB|MB)/.exec(await visit.text(`#goal-${name} .goal-size`)) ?? [];
  return Number(number) * ({ B: 1, kB: 1e3, MB: 1e6 }[/** @type {'B'} */ (unit)] ?? NaN);
}

inBrowsers('goals', (visit, name) => {
  test('without samples there are three, each with its size, which the result keeps', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'dense.onnx': dense({ layers: 4, side: 256 }).model });
    await visit.says('#goal-smallest .goal-size', /about/);
    assert.deepEqual(await tab.$$eval('.goal strong', (all) => all.map(({ textContent }) => textContent)), ['Smallest', 'Fastest', 'Closest']);
    assert.deepEqual(await pressed(visit), []);
    for (const [goal, ending] of [['smallest', '_q4'], ['fastest', '_quantized'], ['closest', '_fp16']]) {
      const told = await size(visit, goal);
      await click(visit, `#goal-${goal}`);
      assert.deepEqual(await pressed(visit), [`goal-${goal}`]);
      await visit.says('#run-why', /Your file is not changed/);
      await visit.quantize();
      await visit.says('.downloads', /Download model/);
      const file = await visit.downloaded(`${ending}.onnx`);
      assert.ok(Math.abs(file.length / told - 1) < 0.1, `${goal}: ${file.length} bytes, forecast ${told}`);
    }
    // One undo is one goal.
    await click(visit, '#undo');
    assert.deepEqual(await pressed(visit), ['goal-fastest']);
    for (const [width, scheme] of /** @type {[number, 'light' | 'dark'][]} */ ([[1280, 'light'], [1280, 'dark'], [390, 'light']])) {
      await tab.setViewport({ width, height: 900 });
      if (name === 'chromium') await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await tab.screenshot({ path: /** @type {`${string}.png`} */ (`${join(out, `goals-${name}-${width}-${scheme}`)}.png`) });
    }
  }));

  test('with samples the usual settings are a goal, a budget leads to the search, and other settings open Advanced', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.drop({ 'small.onnx': convolution(), 'a.npy': npy(new Float32Array(48).map((_, k) => Math.sin(k)), [1, 3, 4, 4]) });
    await visit.says('#run-why', /Your file is not changed/);
    assert.deepEqual(await pressed(visit), ['goal-balanced']);
    assert.equal(await tab.$eval('#advanced-settings', (part) => /** @type {HTMLDetailsElement} */ (part).open), false);
    await visit.says('#goal-balanced .goal-size', /about/);
    await click(visit, '#goal-fastest');
    assert.equal(await tab.$eval('#guard', (box) => /** @type {HTMLInputElement} */ (box).checked), false);
    await tab.select('#rounding', 'gptq');
    assert.deepEqual(await pressed(visit), []);
    assert.equal(await tab.$eval('#advanced-settings', (part) => /** @type {HTMLDetailsElement} */ (part).open), true);
    await click(visit, '#goal-budget');
    await visit.says('#search-title', /Search under a budget/);
  }));

  test('for convolutions without samples, the fastest asks for samples', () => visit({}, async (visit) => {
    await visit.drop({ 'small.onnx': convolution() });
    await visit.says('#goal-fastest', /add samples for their ranges/);
    assert.deepEqual(await pressed(visit), ['goal-fastest']);
    await visit.says('#run-why', /Add at least one sample/);
    await visit.says('#goal-smallest', /8-bit weights/);
  }));
});
