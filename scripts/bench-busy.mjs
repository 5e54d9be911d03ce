// Two threads beside other programs: Octet's int8 and onnxruntime-web, each on one thread and on
// two, beside no, one and two processes that compute without pause. Rows for scripts/bench.mjs.
//
// The lanes take turns. A turn is the mean time of several calls of a kept session, so the trial
// runs by which Octet chooses its threads count too. The median of the ratios of neighbouring turns
// counts.

import { spawn } from 'node:child_process';
import { chosen } from './bench-architectures.mjs';
import { cases, mounts } from './bench-models.mjs';
import { median } from './median.mjs';

/** @typedef {import('./bench-models.mjs').Record_} Record_ */

/** The models. */
const models = { mobilenet: cases.mobilenet, lite0: cases.lite0, resnet50: cases.resnet50 };

/** The loads, by the number of busy processes. */
const loads = ['quiet', 'one busy process', 'two busy processes'];

/** Turns of each lane. */
const rounds = 7;

/** The most that two threads may take of the time of one. */
const target = 1.05;

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} url of the server
 * @param {string} python that has numpy and onnx
 * @param {{ corpus: string, only: string[] }} options
 * @param {Record_} record
 */
export async function busy(browser, url, python, { corpus, only }, record) {
  for (const { model, served } of chosen(models, only, corpus, python)) {
    const lanes = await openLanes(browser, url, served);
    try {
      for (const [strangers, load] of loads.entries()) judge(`${model.name}, ${load}`, strangers, await beside(strangers, lanes), record);
    } finally {
      for (const { page } of lanes) await page.close();
    }
  }
}

/** @typedef {{ name: string, page: import('puppeteer-core').Page, threads: number }} Lane */

/**
 * A page for each engine and number of threads, with a session that is warm.
 *
 * @param {import('puppeteer-core').Browser} browser @param {string} url @param {string} model path of the float model
 */
async function openLanes(browser, url, model) {
  /** @type {Lane[]} */
  const lanes = [];
  for (const engine of ['octet', 'peer']) {
    for (const threads of [1, 2]) {
      const page = await browser.newPage();
      await page.goto(`${url}bench/blank.html`);
      const used = await page.evaluate(openSession, { engine, threads, model, peer: Object.keys(mounts)[0] });
      if (used === threads) lanes.push({ name: `${engine} ${threads}`, page, threads });
      else await page.close();
    }
  }
  return lanes;
}

/**
 * Quantizes the model with Octet in the page and opens a session as `globalThis.turn`.
 *
 * @param {{ engine: string, threads: number, model: string, peer: string }} how
 * @returns {Promise<number>} the number of threads
 */
async function openSession({ engine, threads, model, peer }) {
  const [address, theirs] = ['/www/octet.js', `${peer}ort.wasm.bundle.min.mjs`];
  const { Octet } = await import(address);
  const octet = await Octet.start({ threads: engine === 'octet' ? threads : 1 });
  const answer = await fetch(model);
  if (!answer.ok) throw new Error(`${model}: ${answer.status}`);
  const open = await octet.open(await answer.blob(), { name: model });
  const samples = await open.demoSamples(2);
  await open.calibrate(samples, { method: 'minmax' });
  const { model: quantized } = await open.quantize({});
  const { previews, first } = await open.preview([samples[0]]);
  const { shape } = previews[0];
  /** @type {() => Promise<unknown>} */
  let run;
  let used = octet.threads;
  if (engine === 'octet') {
    const session = await octet.createSession(quantized);
    const { name } = session.card.inputs[0];
    run = () => session.run([{ name, shape, data: first }]);
  } else {
    octet.close();
    const ort = await import(theirs);
    ort.env.wasm.numThreads = threads;
    ort.env.wasm.wasmPaths = peer;
    ort.env.logLevel = 'error';
    const session = await ort.InferenceSession.create(quantized.slice(), { executionProviders: ['wasm'] });
    const feeds = { [session.inputNames[0]]: new ort.Tensor('float32', first, shape) };
    run = () => session.run(feeds);
    used = ort.env.wasm.numThreads;
  }
  let calls = 1;
  const turn = async () => {
    const began = performance.now();
    for (let call = 0; call < calls; call += 1) await run();
    return (performance.now() - began) / calls;
  };
  // A turn takes about a third of a second.
  for (let warm = 0; warm < 8; warm += 1) calls = Math.max(3, Math.ceil(300 / (await turn())));
  Object.assign(globalThis, { turn });
  return used;
}

/** @param {number} strangers @param {Lane[]} lanes */
async function beside(strangers, lanes) {
  const processes = Array.from({ length: strangers }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  try {
    /** @type {Record<string, number[]>} */
    const times = {};
    for (let round = 0; round < rounds; round += 1) {
      for (const { name, page } of lanes) {
        await page.bringToFront();
        const ms = await page.evaluate(() => /** @type {{ turn: () => Promise<number> }} */ (/** @type {unknown} */ (globalThis)).turn());
        (times[name] ??= []).push(ms);
      }
    }
    return times;
  } finally {
    for (const process of processes) process.kill('SIGKILL');
  }
}

/** @param {string} name @param {number} strangers @param {Record<string, number[]>} times @param {Record_} record */
function judge(name, strangers, times, record) {
  for (const [engine, peer] of /** @type {const} */ ([['octet', 'Octet, int8'], ['peer', 'onnxruntime-web 1.30.0, int8']])) {
    const [one, two] = [times[`${engine} 1`], times[`${engine} 2`]];
    if (!one || !two) continue;
    const ratio = median(two.map((ms, round) => ms / one[round]));
    const ours = engine === 'octet' && strangers > 0;
    record('busy', `${name}: ${peer}, up to two threads`, median(two), 'ms', {
      peer: 'the same on one thread', peer_value: median(one), ratio, target: ours ? `at most ${target} times one thread` : 'none: for comparison', holds: !ours || ratio <= target,
    });
  }
}
