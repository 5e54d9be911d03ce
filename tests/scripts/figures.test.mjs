// The main figures of the page are consistent, and differences are significant.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { bytes } from '../../www/library/format.js';
import { headlineOutput, judged, metricsOf, judgedOutputs } from '../../www/features/result/outputs.js';
import { compareTimes, changed, compareAccuracy, runsDiffer, sharesDiffer, timesDiffer } from '../../www/features/result/significance.js';
import { layerTimes, timesByNode, usedThreads } from '../../www/features/result/layer-times.js';
import { changedOperators, worksOn } from '../../www/features/settings/scheme-words.js';

/** @import { OutputError, OutputKind } from '../../www/types.js' */

/** @param {string} name @param {OutputKind} kind @param {number} sqnr @param {Partial<OutputError>} [more] @returns {OutputError} */
const output = (name, kind, sqnr, more) => ({
  name, kind, apart: { sqnr, cosine: 0.9946, max: 1, mean: 0.1 }, top1: null, top5: null, tokens: null, accuracy: null, boxes: null, parts: null, weightsOnly: null, activationsOnly: null, ...more,
});

test('an output that passes its input through does not head the page', () => {
  const outputs = [output('ids', 'integers', 200, { top1: 1 }), output('mask', 'passed', 200), output('embedding', 'embedding', 19.7)];
  const found = { outputs, headline: 'embedding' };
  assert.deepEqual(judgedOutputs(outputs).map(({ name }) => name), ['embedding']);
  for (const chosen of ['', 'ids', 'gone']) assert.equal(headlineOutput(found, chosen)?.name, 'embedding');
  const said = judged(/** @type {OutputError} */ (headlineOutput(found, '')), 4);
  assert.equal(said.value, '0.9946');
  assert.match(said.what, /cosine/);
  assert.equal(said.note, 'SQNR 19.7 dB');
  assert.equal(headlineOutput({ outputs: outputs.slice(0, 2), headline: null }, ''), undefined);
});

test('an output that a person chose heads the page, else the one that is worst off', () => {
  const found = { outputs: [output('a', 'values', 30), output('b', 'values', 20)], headline: 'b' };
  assert.deepEqual(['', 'a', 'b'].map((chosen) => headlineOutput(found, chosen)?.name), ['b', 'a', 'b']);
});

test('each kind of output is judged by its own figure', () => {
  const found = (/** @type {OutputError} */ one, /** @type {{ read?: { same: number, of: number } }} */ more = {}) => judged(one, 10, more);
  assert.match(found(output('y', 'classes', 30, { top1: 0.9 })).what, /top-1 agreement/);
  assert.match(found(output('y', 'classes', 30, { top1: 1, accuracy: [0.9, 0.8] })).what, /accuracy; 90\.0 % in float/);
  assert.match(found(output('y', 'steps', 30, { top1: 0.99 }), { read: { same: 9, of: 10 } }).what, /10 lines read the same as in float/);
  const boxes = found(output('y', 'boxes', 40, { boxes: { confident: 20, found: 15, extra: 1 }, parts: { boxes: 45, scores: 12.5 } }));
  assert.deepEqual([boxes.value, boxes.kind], ['75.0 %', 'bad']);
  assert.match(boxes.note, /1 extra; SQNR of boxes 45\.0 dB, of scores 12\.5 dB/);
  const none = found(output('y', 'boxes', 40, { boxes: { confident: 0, found: 0, extra: 0 }, parts: { boxes: 45, scores: 12.5 } }));
  assert.deepEqual([none.value, none.metric], ['12.5 dB', 'sqnr']);
  // SQNR has a single sign and name: signal over noise.
  for (const kind of /** @type {OutputKind[]} */ (['classes', 'embedding', 'values', 'boxes'])) {
    const { value, what, note } = found(output('y', kind, 19.6, { top1: kind === 'classes' ? 1 : null }));
    assert.doesNotMatch(`${value} ${what} ${note}`.replace('top-1', ''), /−|-\d/);
  }
  assert.equal(metricsOf(output('y', 'embedding', 20)).cosine, 0.9946);
  assert.equal(metricsOf(output('y', 'boxes', 20, { boxes: { confident: 0, found: 0, extra: 3 } })).boxes, undefined);
});

test('times whose bands meet are not told apart', () => {
  const [one, other, far] = [{ median: 24.7, p10: 20, p90: 34 }, { median: 25.7, p10: 21, p90: 35 }, { median: 83.7, p10: 76, p90: 90 }];
  assert.equal(timesDiffer(one, other), false);
  assert.equal(timesDiffer(one, far), true);
  const how = { text: (/** @type {number} */ by) => `${by.toFixed(2)} ms`, moreIsBetter: false };
  assert.deepEqual(changed(24.7, 25.72, { ...how, differ: timesDiffer(one, other) }), { text: 'no significant difference from the previous result', kind: '' });
  assert.deepEqual(changed(24.7, 83.7, { ...how, differ: timesDiffer(one, far) }), { text: '−59.00 ms compared to the previous result, better', kind: 'good' });
  assert.equal(changed(83.7, 24.7, how).kind, 'bad');
  assert.equal(changed(20.02, 20, { text: String, moreIsBetter: true, least: 0.05 }).text, 'unchanged');
  assert.equal(compareTimes(one, other).text, 'no significant difference');
  assert.match(compareTimes(one, far).text, /^faster, 0\.30/);
});

test('a result that was measured while the machine was busier is not said to be slower', () => {
  const [calm, busy] = [{ ms: 31, msLow: 30, msHigh: 32, floatMs: 63, floatLow: 60, floatHigh: 66 }, { ms: 141, msLow: 98, msHigh: 258, floatMs: 200, floatLow: 150, floatHigh: 260 }];
  assert.equal(runsDiffer(calm, busy), false);
  assert.equal(runsDiffer(calm, { ...busy, floatLow: 65, floatMs: 70 }), true);
  assert.equal(runsDiffer(calm, { ...calm, msLow: 31 }), false);
});

test('a sample or two that changed sides is no difference', () => {
  assert.deepEqual([sharesDiffer(1, 0.75, 4), sharesDiffer(0.9, 0.87, 100), sharesDiffer(0.9, 0.8, 100)], [false, false, true]);
  assert.equal(compareAccuracy(1, 0.75, 4).kind, '');
  assert.match(compareAccuracy(1, 0.75, 4).text, /too few samples/);
  assert.equal(compareAccuracy(0.9, 0.7, 100).kind, 'bad');
});

/** @param {number} median @param {number} mean */
const spread = (median, mean) => ({ median, mean, p10: median, p90: median });

test('the layers of a run add up to the one figure that is told of it', () => {
  // A busy machine: each layer is slow in another run, so the layers' medians add up to half of the
  // run's.
  const layer = (/** @type {string} */ name) => ({ name, nodes: [name], ms: spread(10, 20), ownBytes: 2_000_000, liveBytes: 4_000_000, calls: 1 });
  const run = /** @type {any} */ ({ layers: ['a', 'b', 'c', 'd'].map(layer), totals: { total: spread(83.7, 84), outsideMs: 4 } });
  const { layers, outside, total } = layerTimes(run);
  assert.equal(total, 83.7);
  const sum = layers.reduce((all, { took }) => all + took, 0) + outside;
  assert.ok(Math.abs(sum - total) < 1e-9, String(sum));
  const byNode = timesByNode(layerTimes(run), layerTimes(run));
  assert.equal(byNode.a.floatMs, byNode.a.intMs);
  assert.equal(byNode.a.ownKb, 2000);
});

test('the time of both models comes with their threads', () => {
  const [one, two] = [1, 2].map((threads) => ({ threads, maxThreads: 2 }));
  assert.equal(usedThreads(two, two), 'both on 2 threads');
  assert.equal(usedThreads(one, two), 'on 2 threads, float on 1 of 2 threads');
  assert.equal(usedThreads({ threads: 1, maxThreads: 1 }, { threads: 1, maxThreads: 1 }), 'both on 1 thread');
});

test('what an operator works on is called what it is', () => {
  assert.deepEqual([{}, { scheme: 'float16' }, { scheme: 'blocks' }].map((document) => worksOn(/** @type {any} */ (document)).title), ['In integer arithmetic', 'In half precision', 'With integer weights']);
  const nodes = [true, true, false].map((quantized, at) => ({ node: `n${at}`, operator: 'Conv', quantized, reason: null }));
  const summary = /** @type {any} */ ({ nodes });
  assert.deepEqual(changedOperators(summary, { operators: [['Conv', 3]] }), { text: '2 of 3 operators', more: '' });
  assert.match(changedOperators(summary, { operators: [['Conv', 3], ['Relu', 2]] }).more, /^The file has 5/);
});

test('sizes are decimal everywhere', () => {
  assert.equal(bytes(79_400_000), '79.4 MB');
  assert.equal(bytes(undefined), '–');
  const files = readdirSync('www', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  for (const name of files) assert.doesNotMatch(readFileSync(`www/${name}`, 'utf8'), /\b[KMG]iB\b/, name);
});
