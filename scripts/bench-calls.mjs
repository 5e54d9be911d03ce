// A call of a kept session against the run inside of it: rows for scripts/bench.mjs.
//
// The page fills its input, as a program with new data does, and calls `run`. The session tells the
// time in the engine of the same call, so both have one state of the machine. Workers that only
// compute for as long and answer show what the browser's messages cost by themselves.

import { chosen } from './bench-architectures.mjs';
import { cases } from './bench-models.mjs';
import { median } from './median.mjs';

/** @typedef {import('./bench-models.mjs').Record_} Record_ */

/** The models, small ones: the same cost weighs more the shorter the run. */
const models = { mobilenet: cases.mobilenet, lite0: cases.lite0 };

/** The most that a call may take of the time of its run. */
const target = 1.03;

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url of the server
 * @param {string} python that has numpy and onnx
 * @param {{ corpus: string, only: string[] }} options
 * @param {Record_} record
 */
export async function calls(browser, url, python, { corpus, only }, record) {
  for (const { model: one, served } of chosen(models, only, corpus, python)) {
    for (const threads of [1, 2]) {
      const page = await browser.newPage();
      try {
        await page.goto(`${url}bench/blank.html`);
        const { call, run, empty } = await page.evaluate(measured, { model: served, threads });
        const name = `${one.name}, ${threads === 1 ? 'one thread' : 'two threads'}`;
        const ratio = median(call.map((ms, at) => ms / run[at]));
        record('calls', `${name}: a call of a kept session`, median(call), 'ms', {
          peer: 'the run inside', peer_value: median(run), ratio, target: `at most ${target} times the run`, holds: ratio <= target,
        });
        record('calls', `${name}: what it adds`, median(call.map((ms, at) => ms - run[at])), 'ms', {
          peer: 'an empty call of as long', peer_value: median(empty), ratio: null, target: 'none: the messages of the browser', holds: true,
        });
      } finally {
        await page.close();
      }
    }
  }
}

/**
 * Times of calls and of the runs inside, and what an empty call of that length adds.
 *
 * @param {{ model: string, threads: number }} how
 */
async function measured({ model, threads }) {
  const address = '/www/octet.js';
  const { Octet } = await import(address);
  const octet = await Octet.start({ threads });
  const answer = await fetch(model);
  if (!answer.ok) throw new Error(`${model}: ${answer.status}`);
  const open = await octet.open(await answer.blob(), { name: model });
  const samples = await open.demoSamples(2);
  await open.calibrate(samples, { method: 'minmax' });
  const { model: quantized } = await open.quantize({});
  const { previews, first } = await open.preview([samples[0]]);
  const session = await octet.createSession(quantized);
  const inputs = { [session.card.inputs[0].name]: { shape: previews[0].shape, data: /** @type {Float32Array} */ (first) } };

  const script = 'onmessage = ({ data }) => { const end = performance.now() + data; while (performance.now() < end); postMessage(null); };';
  const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
  /** @param {number} ms */
  const busy = (ms) => new Promise((next) => {
    worker.onmessage = next;
    worker.postMessage(ms);
  });
  /** @type {{ call: number[], run: number[], empty: number[] }} */
  const found = { call: [], run: [], empty: [] };
  const [warmUp, counted] = [150, 200];
  for (let call = 0; call < warmUp + counted; call += 1) {
    const { data } = Object.values(inputs)[0];
    for (let at = 0; at < data.length; at += 1) data[at] = -data[at];
    const began = performance.now();
    await session.run(inputs);
    const ms = performance.now() - began;
    const emptyBegan = performance.now();
    await busy(session.ms);
    const empty = performance.now() - emptyBegan - session.ms;
    if (call < warmUp) continue;
    found.call.push(ms);
    found.run.push(session.ms);
    found.empty.push(empty);
  }
  worker.terminate();
  octet.close();
  return found;
}
