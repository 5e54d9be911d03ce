// Running, quantizing, comparing and exporting through `www/octet.js`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convolution, npy } from './model.mjs';
import { inBrowsers } from './walk.mjs';

inBrowsers('measuring', (visit) => {
  test('layers, outputs, comparison and files come from the public interface', () => visit({}, async (visit) => {
    const samples = [0, 1, 2, 3].map((index) => [...npy(new Float32Array(48).map((_, k) => ((k * 7 + index * 5) % 19) / 9 - 1), [1, 3, 4, 4])]);
    const found = await visit.tab.evaluate(async (model, samples) => {
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      const octet = await Octet.start({ threads: 1 });
      const files = samples.map((bytes, index) => ({ path: `s${index}.npy`, blob: new Blob([new Uint8Array(bytes)]) }));
      const bytes = new Uint8Array(model);
      const data = new Float32Array(48).fill(0.5);
      const once = await octet.run(bytes, [{ name: 'x', shape: [1, 3, 4, 4], data }], { runs: 2, warmUp: 0 });
      const open = await octet.open(bytes, { name: 'small.onnx' });
      await octet.scope('my step', () => open.calibrate(files));
      const { model: quantized } = await open.quantize();
      const run = await open.run(files.slice(0, 1), { runs: 3 });
      const compared = await open.compare(quantized, files);
      const [report, html, trace] = [await open.report(), await open.export('html'), await open.export('trace')];
      const byTract = await open.run(files.slice(0, 1), { runs: 1, floatKernels: 'tract' });
      const byNobody = await open.run(files.slice(0, 1), { floatKernels: /** @type {any} */ ('fast') }).catch((/** @type {Error} */ error) => error.message);
      const wrong = await octet.run(bytes, [{ name: 'x', shape: [2, 3], data }]).catch((/** @type {Error} */ error) => error.message);
      octet.close();
      return { once: { shape: once.outputs[0].shape, length: once.outputs[0].data.length, runs: once.totals.runs }, run, compared, report, html, trace, byTract, byNobody, wrong };
    }, [...convolution()], samples);
    assert.deepEqual(found.once, { shape: [1, 2, 4, 4], length: 32, runs: 2 });
    const names = found.run.layers.flatMap((/** @type {import('../../www/types.js').Layer} */ layer) => layer.nodes);
    assert.deepEqual(names.sort(), ['conv', 'relu']);
    assert.equal(found.run.totals.macs, 864);
    // Our convolution includes the clamp; tract uses a separate operator.
    assert.deepEqual([found.run, found.byTract].map((run) => run.layers.length), [1, 2]);
    assert.match(found.byNobody, /`fast`; use octet or tract/);
    assert.ok(found.run.totals.resolutionMs > 0 && found.run.totals.peakBytes > 0);
    assert.equal(found.compared.samples, 4);
    assert.ok(found.compared.outputs[0].apart.sqnr > 20);
    assert.deepEqual(found.compared.worst, ['conv']);
    for (const part of ['"my step Start"', '"my step End"', 'Calibration sample s3.npy done', '\nprofiles:', '\ncomparison:']) {
      assert.ok(found.report.includes(part), part);
    }
    assert.match(found.html, /default-src 'none'/);
    assert.ok(JSON.parse(found.trace).traceEvents.length > 5);
    assert.match(found.wrong, /`x` has 48 elements/);
  }));

  test('a session writes the inputs of repeated runs into shared memory, with equal results', () => visit({}, async (visit) => {
    const found = await visit.tab.evaluate(async (model) => {
      const { Octet } = await import(/** @type {string} */ ('./www/octet.js'));
      const octet = await Octet.start({ threads: 1 });
      const session = await octet.createSession(new Uint8Array(model));
      const input = (/** @type {number} */ seed, batch = 1) => ({ x: { shape: [batch, 3, 4, 4], data: new Float32Array(48 * batch).map((_, k) => ((k * 7 + seed * 5) % 19) / 9 - 1) } });
      const run = async (/** @type {ReturnType<typeof input>} */ inputs) => [...(await session.run(inputs)).y.data];
      const alone = async (/** @type {ReturnType<typeof input>} */ inputs) => {
        const other = await octet.createSession(new Uint8Array(model));
        const { y } = await other.run(inputs);
        await other.close();
        return [...y.data];
      };
      /** @type {[number[][], number[][]]} */
      const [one, other] = [[], []];
      for (const seed of [0, 1, 2, 3]) {
        one.push(await run(input(seed)));
        other.push(await alone(input(seed)));
      }
      // At once: only the first may use the shared memory.
      one.push(...(await Promise.all([4, 5, 6].map((seed) => run(input(seed))))));
      for (const seed of [4, 5, 6]) other.push(await alone(input(seed)));
      // Another shape, and the first one again.
      for (const [seed, batch] of [[7, 2], [8, 2], [9, 2], [10, 1], [11, 1]]) {
        one.push(await run(input(seed, batch)));
        other.push(await alone(input(seed, batch)));
      }
      const short = await session.run({ x: { shape: [1, 3, 4, 4], data: new Float32Array(7) } }).catch((/** @type {Error} */ error) => error.message);
      one.push(await run(input(1)));
      other.push(await alone(input(1)));
      octet.close();
      return { isolated: crossOriginIsolated, one, other, short };
    }, [...convolution()]);
    assert.ok(found.isolated);
    assert.deepEqual(found.one, found.other);
    assert.ok(new Set(found.one.map(String)).size > 8);
    assert.match(found.short, /`x` has 7 elements/);
  }));
}, ['chromium']);
