// Depthwise layers of real models: int8 against tract's float convolution and our own, and dilated
// against undilated windows. Rows for scripts/bench-kernels.mjs.
//
// Models of six such layers, quantized and in float. The measure is the time of the convolutions in
// the table of layers, without the ends of the model. All of them run in one page, in turns.

import { depthwise } from '../tests/e2e/model.mjs';
import { median } from './median.mjs';

const dilations = [1, 2, 5];
const [layers, channels, size] = [6, 96, 28];

/**
 * Rows of one kernel.
 *
 * @param {import('puppeteer-core').Page} page on a page of the server
 * @param {import('./bench-kernels.mjs').Recorder} record
 * @param {number} kernel
 */
export async function depthwiseLayers(page, record, kernel) {
  const models = dilations.map((dilation) => [...depthwise({ layers, channels, size, kernel, dilation })]);
  const found = await times(page, models);
  dilations.forEach((dilation, at) => {
    const row = `depthwise layer ${kernel}×${kernel}, ${size}×${size}×${channels}, dilation ${dilation}`;
    const { int8, tract, octet } = found[at];
    /** @param {number[]} others @param {string} peer @param {number} least */
    const against = (others, peer, least) => {
      const ratio = median(others.map((ms, round) => ms / int8[round]));
      record('kernels', row, median(int8) * 1000, 'µs', {
        peer, peer_value: median(others) * 1000, ratio, target: `at least ${least} times as fast`, holds: ratio >= least,
      });
    };
    against(tract, "tract's float convolution", 2);
    against(octet, 'our own float convolution', 1);
    if (dilation === 1) return;
    const slower = median(int8.map((ms, round) => ms / found[0].int8[round]));
    record('kernels', row, median(int8) * 1000, 'µs', {
      peer: 'the same with dilation 1', peer_value: median(found[0].int8) * 1000, ratio: slower, target: 'at most 1.1 of its time', holds: slower <= 1.1,
    });
  });
}

/**
 * Milliseconds of one convolution, of each model, round by round.
 *
 * @param {import('puppeteer-core').Page} page @param {number[][]} models their bytes
 * @returns {Promise<Record<'int8' | 'tract' | 'octet', number[]>[]>}
 */
function times(page, models) {
  return page.evaluate(async ({ models, rounds }) => {
    const address = '/www/octet.js';
    const { Octet } = await import(address);
    const octet = await Octet.start({ threads: 1 });
    const lanes = /** @type {const} */ (['int8', 'tract', 'octet']);
    const all = [];
    for (const bytes of models) {
      const plain = await octet.open(new Uint8Array(bytes), { name: 'depthwise.onnx' });
      const samples = await plain.demoSamples(2);
      await plain.calibrate(samples, { method: 'minmax' });
      const { model } = await plain.quantize();
      const quantized = await octet.open(model);
      /** @param {'int8' | 'tract' | 'octet'} lane @param {number} runs */
      const run = async (lane, runs) => {
        const opened = lane === 'int8' ? quantized : plain;
        const floatKernels = lane === 'int8' ? undefined : lane;
        /** @type {import('../www/types.js').Run} */
        const { layers } = await opened.run(samples.slice(0, 1), { runs, warmUp: 2, floatKernels });
        const convolutions = layers.filter((layer) => layer.operator === 'Conv');
        if (convolutions.length === 0) throw new Error('no convolution is in the table of layers');
        return convolutions.reduce((sum, layer) => sum + layer.ms.median, 0) / convolutions.length;
      };
      all.push({ run, found: /** @type {Record<'int8' | 'tract' | 'octet', number[]>} */ ({ int8: [], tract: [], octet: [] }) });
    }
    // Warm-up runs, until the browser has compiled the hot code.
    for (let warm = 0; warm < 4; warm += 1) for (const { run } of all) for (const lane of lanes) await run(lane, 10);
    for (let round = 0; round < rounds; round += 1) {
      for (const { run, found } of all) for (const lane of lanes) found[lane].push(await run(lane, 15));
    }
    octet.close();
    return all.map(({ found }) => found);
  }, { models, rounds: 11 });
}
