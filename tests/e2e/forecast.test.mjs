// The forecast is shown before a run and compared with the actual figures afterwards.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inBrowsers } from './walk.mjs';

inBrowsers('the forecast', (visit) => {
  test('time, memory and size are told before the run, and beside what came of it', () => visit({}, async (visit) => {
    const { tab } = visit;
    tab.setDefaultTimeout(240_000);
    await visit.ready(4);
    await visit.says('#forecast', /Estimated time.*s.*Peak memory[\d.]+ MB.*Quantized size5\.\d\d MB.*4 samples on \d threads?/s);
    // Another scheme has no forecast; the first scheme has its forecast again.
    await tab.select('#scheme', 'weights');
    await tab.waitForFunction(() => !document.querySelector('#forecast'));
    await tab.select('#scheme', 'static');
    await visit.says('#forecast', /Estimated time/);
    await visit.quantize();
    await tab.$eval('#forecast-actual', (details) => details.setAttribute('open', ''));
    const rows = await tab.$$eval('#forecast-actual tbody tr', (all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? '')));
    assert.deepEqual(rows.map(([name]) => name), ['Time', 'Size', 'Peak memory']);
    const apart = (/** @type {string[]} */ row) => Math.abs(Number(row[3].replace('−', '-').replace(' %', '')));
    assert.ok(apart(rows[1]) <= 5, rows[1].join(', '));
    assert.ok(apart(rows[2]) <= 30, rows[2].join(', '));
  }));
});
