// Cancel takes less than 200 ms in every stage of a run; inputs are kept.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inBrowsers } from './walk.mjs';

/** @import { Visit } from './walk.mjs' */

/** Enough photos for a run that lasts until the last cancel, on a fast machine, too. */
const many = 120;

/** Times of the cancel, in milliseconds after its stage has begun. */
const moments = [0, 90, 250, 410, 600];

/**
 * Presses Cancel and returns the milliseconds until the run has gone from the page.
 *
 * @param {Visit} visit
 * @returns {Promise<number>}
 */
const cancel = (visit) => visit.tab.evaluate(() => new Promise((resolve) => {
  const began = performance.now();
  const gone = new MutationObserver(() => {
    if (document.querySelector('#cancel')) return;
    gone.disconnect();
    resolve(performance.now() - began);
  });
  gone.observe(document.body, { childList: true, subtree: true });
  /** @type {HTMLElement | null} */
  const button = document.querySelector('#cancel');
  if (!button) throw new Error('the run has ended by itself');
  button.click();
}));

inBrowsers('cancel', (visit) => {
  for (const plain of [false, true]) {
    test(`a run is cancelled at once and run again, ${plain ? 'plain' : 'isolated'}`, (t) => visit({ plain }, async (visit) => {
      await visit.ready(many);
      const took = [];
      for (const moment of moments) {
        await visit.start();
        await visit.says('#progress-title', /Calibrating/);
        await new Promise((next) => setTimeout(next, moment));
        took.push(await cancel(visit));
        assert.match(await visit.text('.file'), /efficientnet/);
        assert.equal(await visit.tab.$('.problem'), null);
      }
      // Before the samples: if cancelling ended the worker, another is still starting and opening
      // the model.
      for (const moment of moments) {
        await visit.start();
        await visit.tab.waitForSelector('#cancel');
        await new Promise((next) => setTimeout(next, moment / 3));
        took.push(await cancel(visit));
      }
      const sorted = [...took].sort((a, b) => a - b).map(Math.round);
      t.diagnostic(`cancelled after ${took.map(Math.round).join(', ')} ms; median ${sorted[sorted.length >> 1]} ms, worst ${sorted.at(-1)} ms`);
      // The limit is 200 ms, plus the time that the scheduler of a busy machine may take.
      assert.ok((sorted.at(-1) ?? 0) < 1000, `${sorted.at(-1)} ms`);
      await visit.quantize();
    }));
  }

  test('a calibration is stopped and what it has seen is used; the next run sees all', () => visit({}, async (visit) => {
    const { tab } = visit;
    await visit.ready(many);
    await visit.start();
    await tab.waitForSelector('#enough:not([aria-disabled])');
    await tab.click('#enough');
    await visit.finished();
    const said = await visit.text('#partial');
    const seen = Number(/after (\d+) of \d+ samples/.exec(said)?.[1]);
    assert.ok(seen > 0 && seen < many && said.includes(`of ${many} samples`), said);
    assert.match(await visit.text('#result-facts'), new RegExp(`${seen} of ${many} samples`));
    assert.match((await visit.downloaded('.yaml')).toString(), new RegExp(`samples: ${seen}\\b`));
    assert.ok((await visit.downloaded('.onnx')).length > 1_000_000);
    // Another setting needs no calibration; the result again names the samples of its ranges.
    await tab.click('#tab-layers');
    await tab.waitForSelector('[aria-label="Keep _conv_stem float"]');
    await tab.click('[aria-label="Keep _conv_stem float"]');
    await tab.waitForFunction(() => document.querySelectorAll('.run-history tbody tr').length === 2);
    await tab.click('#tab-overview');
    assert.match(await visit.text('#partial'), new RegExp(`after ${seen} of ${many}`));
    // Content that appears during a run must not move the buttons.
    await tab.evaluate(() => {
      const places = (/** @type {any} */ (window).places = new Set());
      const note = () => document.querySelectorAll('#cancel, #enough').forEach((button) => places.add(button.getBoundingClientRect().top));
      new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
    });
    await visit.start();
    await visit.says('#progress-title', /Calibrating/);
    await tab.waitForSelector('svg.ranges');
    await visit.finished();
    assert.equal((await tab.evaluate(() => [.../** @type {any} */ (window).places])).length, 1);
    assert.equal(await tab.$('#partial'), null);
    // A cancelled run keeps the previous result.
    const before = await visit.shown();
    await tab.select('#rounding', 'gptq');
    await visit.says('#changed', /need a new calibration/);
    await visit.start();
    await visit.says('#progress-title', /Calibrating/);
    await cancel(visit);
    await visit.shows(before);
    assert.ok((await visit.downloaded('.onnx')).length > 1_000_000);
  }));
});
