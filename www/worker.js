// @ts-check
/**
 * The worker, the only place where wasm runs. It answers calls one at a time, in order, and holds
 * the sessions. It may be terminated at any time; the page then starts another and opens the file
 * again.
 */

import { loadEngine } from './builds.js';
import { calibrate, forecast } from './calibration-worker.js';
import { isLoaded, loaded, memory, panicMessage, samplesOf, session, sessions, stopped, use, useThreads } from './loaded-engine.js';
import { tokenize } from './texts-worker.js';

/** @import { NamedFile, OutputTensor, Shared } from './types.js' */
/** @import { Handlers, Request } from './calls.js' */
/** @import { Report } from './loaded-engine.js' */

/** Time in milliseconds that the engine warms up after loading, unless a call arrives. */
const warmth = 1600;

const scope = /** @type {DedicatedWorkerGlobalScope} */ (/** @type {unknown} */ (self));

/** Addresses of the wasm files, where the worker can't find them itself. @type {Record<string, string> | undefined} */
let wasmFiles;

/** Models that run many times, with their plans. @type {Map<number, import('../pkg/threads/octet.js').Inference>} */
const inferences = new Map();

/** @param {number} key */
function inference(key) {
  const open = inferences.get(key);
  if (!open) throw Object.assign(new Error('This session is closed: create another one.'), { kind: 'order' });
  return open;
}

/** Searches; loaded with the first one. @type {Promise<typeof import('./search-worker.js')> | undefined} */
let searching;
const searches = () => (searching ??= import('./search-worker.js'));

/** Ranges of other tools; loaded when they are first used. */
const ranges = () => import('./ranges-worker.js');

/** Shared statistics; loaded when they are first used. */
const statistics = () => import('./statistics-worker.js');

/** Models of any size; loaded when the first one is opened. */
const streamed = () => import('./streamed-worker.js');

/**
 * Takes a lock that lasts as long as this worker. False if the browser grants none.
 *
 * @param {string} name
 * @returns {Promise<boolean>}
 */
const holds = (name) => new Promise((tell) => {
  scope.navigator.locks.request(name, () => {
    tell(true);
    return new Promise(() => {});
  }).catch(() => tell(false));
});

/** @type {Handlers} */
const calls = {
  async start(options, report) {
    wasmFiles = options.files;
    const module = await loadEngine(options.variant, wasmFiles, options.module);
    module.install();
    use(module);
    const pool = /** @type {{ initThreadPool?: (count: number) => Promise<unknown> }} */ (module);
    if (options.threads > 1 && scope.crossOriginIsolated && pool.initThreadPool) {
      report({ stage: 'Starting the threads' });
      await pool.initThreadPool(options.threads).catch((cause) => {
        throw Object.assign(new Error(String(cause?.message ?? cause)), { kind: 'threads' });
      });
      useThreads(options.threads);
    }
    /** @type {Shared | null} */
    const shared = scope.crossOriginIsolated && options.variant === 'threads'
      ? { control: module.control(), panic: module.panicText() }
      : null;
    return { shared, locked: options.lock !== undefined && await holds(options.lock) };
  },

  async open({ key, name, blob }, report) {
    const opened = await loaded().Session.open(name, blob, reading(report));
    sessions.get(key)?.free();
    sessions.set(key, opened);
    return { card: opened.card(), wanted: opened.wantedFiles() };
  },

  async attach({ key, files }, report) {
    const open = session(key);
    await open.attach(files, reading(report));
    return { card: open.card(), wanted: open.wantedFiles() };
  },

  group: ({ paths }) => loaded().group(paths),

  async preview({ key, files, settings }) {
    const [sample] = samplesOf(files);
    if (!sample) throw Object.assign(new Error('There is no sample among these files.'), { kind: 'sample' });
    return await session(key).preview(sample.name, sample.files, settings);
  },

  async check({ key, files, settings }) {
    const found = [];
    for (const { name, files: parts } of samplesOf(files)) {
      const misfit = await session(key).checkSample(name, parts, settings);
      if (misfit) found.push(misfit);
    }
    return found;
  },

  async tensors({ key, files, settings }) {
    const [sample] = samplesOf(files);
    if (!sample) throw Object.assign(new Error('There is no sample among these files.'), { kind: 'sample' });
    return session(key).tensors(sample.name, sample.files, settings);
  },

  demoSamples({ key, count, seed }) {
    /** @type {{ path: string, bytes: Uint8Array<ArrayBuffer> }[]} */
    const made = session(key).demoSamples(count, seed);
    return made.map(({ path, bytes }) => ({ path, blob: new Blob([bytes]) }));
  },

  async tableRows({ key, file: { path, blob } }) {
    /** @type {{ path: string, bytes: Uint8Array<ArrayBuffer> }[]} */
    const made = await session(key).tableRows(path, blob);
    return made.map(({ path: name, bytes }) => ({ path: name, blob: new Blob([bytes]) }));
  },

  snippet: ({ key, kind, file, image }) => session(key).snippet(kind, file, image),

  calibrate,

  forecast,

  quantize({ key, settings }, report) {
    report({ stage: 'Writing the quantized model', memory: memory() });
    const open = session(key);
    const { model, summary, ranges } = open.quantize(settings);
    // The Blob is created here, as a large one would block the page.
    return { model, file: new Blob([model], { type: 'application/octet-stream' }), summary, ranges, report: open.report(), memory: memory() };
  },

  /** One sample, measured layer by layer. */
  async run({ key, sample, samples, runs, warmUp, floatKernels }, report, enough) {
    loaded().resetControl();
    if (await enough()) throw stopped();
    report({ stage: 'Running', memory: memory() });
    const { outputs, table } = await session(key).run(sample, samples, runs, warmUp, floatKernels);
    const { layers, ...totals } = table;
    return { outputs, layers, totals };
  },

  compare: async (args, report, enough) => (await import('./comparison-worker.js')).compare(args, report, enough),

  search: async (args, report, enough) => (await searches()).search(args, report, enough),
  searchSettings: async (args) => (await searches()).searchSettings(args),

  readStatistics: async (args) => (await statistics()).readStatistics(args),
  calibrateByStatistics: async (args, report) => (await statistics()).calibrateByStatistics(args, report),
  observe: async (args, report) => (await statistics()).observe(args, report),

  readRanges: async (args) => (await ranges()).readRanges(args),
  calibrateByRanges: async (args, report) => (await ranges()).calibrateByRanges(args, report),
  writeRanges: async (args) => (await ranges()).writeRanges(args),

  async openInference({ key, name, blob, data }) {
    const opened = await loaded().Inference.open(name, blob, data);
    inferences.set(key, opened);
    return opened.card();
  },

  infer({ key, inputs }) {
    const open = inference(key);
    return inputs ? open.run(inputs) : open.runStaged();
  },

  stageInputs: ({ key, inputs }) => inference(key).stage(inputs),

  closeInference({ key }) {
    inferences.get(key)?.free();
    inferences.delete(key);
  },

  openStreamed: async (args) => (await streamed()).openStreamed(loaded(), args),
  attachStreamed: async (args) => (await streamed()).attachStreamed(args),
  planStreamed: async (args) => (await streamed()).planStreamed(args),
  convert: async (args, report) => (await streamed()).convert(loaded(), args, report),
  discardStreamed: async (args) => (await streamed()).discardStreamed(args),
  closeStreamed: async (args) => (await streamed()).closeStreamed(args),

  tokenize: (args) => tokenize(args, wasmFiles),

  graphOf: ({ blob }) => loaded().graphOf('the model', blob),
  withOutputs: async ({ blob, values }) => new Blob([/** @type {BlobPart} */ (await loaded().withOutputs('the model', blob, values))]),
  excerpt: async ({ blob, inputs, outputs }) => new Blob([/** @type {BlobPart} */ (await loaded().excerpt('the model', blob, inputs, outputs))]),

  graph: ({ key }) => session(key).graph(),

  distribution: ({ key, value, element, symmetric }) => session(key).distribution(value, element, symmetric),

  channels: ({ key, weight }) => session(key).channels(weight),

  report: ({ key }) => session(key).report(),

  export: ({ key, kind }) => session(key).export(kind),

  beginScope({ message }) {
    for (const open of sessions.values()) open.beginScope(message);
  },

  endScope() {
    for (const open of sessions.values()) open.endScope();
  },

  async close({ key }) {
    sessions.get(key)?.free();
    sessions.delete(key);
    (await searching)?.forget(key);
  },

  memory: () => memory(),

  presets: () => loaded().imagePresets(),
};

/** @param {Report} report @returns {(done: number, of: number) => void} */
function reading(report) {
  return (done, of) => report({ stage: 'Reading the file', done, of, unit: 'bytes' });
}

/**
 * Runs the whole pipeline on a small model repeatedly, until the browser has compiled the hot code
 * or a call arrives.
 */
async function warmUp() {
  const until = performance.now() + warmth;
  const [key, quiet, no] = [0, () => {}, async () => false]; // the page counts from 1
  /** @type {NamedFile[]} */
  let files = [];
  const way = [
    () => calls.open({ key, name: 'warm-up', blob: new Blob([/** @type {BlobPart} */ (loaded().warmUp())]) }, quiet, no),
    () => (files = /** @type {NamedFile[]} */ (calls.demoSamples({ key, count: 4, seed: 0 }, quiet, no))),
    () => calls.calibrate({ key, files, method: 'auto', samples: {} }, quiet, no),
    () => calls.quantize({ key, settings: {} }, quiet, no),
  ];
  try {
    for (let at = 0; performance.now() < until; at += 1) {
      await delivered();
      if (waiting > 0) break;
      await way[at % way.length]();
    }
  } catch (cause) {
    console.warn('The engine could not warm up:', cause); // nothing depends on it
  }
  await calls.close({ key }, quiet, no);
}

/** @param {any} error @returns {{ kind: string, message: string }} */
function failure(error) {
  if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
    return { kind: 'crash', message: panicMessage() || String(error.message) };
  }
  return { kind: typeof error?.kind === 'string' ? error.kind : 'internal', message: String(error?.message ?? error) };
}

/**
 * The buffers of a result, which move to the page without a copy.
 *
 * @param {Request['call']} call
 * @param {any} value
 * @returns {Transferable[]}
 */
function movable(call, value) {
  if (call === 'quantize') return [value.model.buffer];
  return call === 'infer' || call === 'tensors' ? value.map((/** @type {OutputTensor} */ { data }) => data.buffer) : [];
}

/** Calls run in order: a session is never entered twice. */
let line = Promise.resolve();

/** Number of unanswered calls. */
let waiting = 0;

/** Ids of calls that should end early with the data so far. @type {Set<number>} */
const sufficed = new Set();

/** Lets pending messages of the page arrive. */
const mail = new MessageChannel();
const delivered = () => new Promise((next) => {
  mail.port1.onmessage = next;
  mail.port2.postMessage(null);
});

scope.addEventListener('message', (event) => {
  const { id, call, args, enough } = /** @type {Request} */ (event.data);
  if (enough) return void sufficed.add(id);
  waiting += 1;
  line = line.then(async () => {
    try {
      const value = await calls[call](args, (progress) => scope.postMessage({ id, progress }), async () => (await delivered(), sufficed.has(id)));
      scope.postMessage({ id, value }, movable(call, value));
    } catch (error) {
      scope.postMessage({ id, failure: failure(error) });
    }
    sufficed.delete(id);
    waiting -= 1;
    if (call === 'start' && isLoaded()) line = line.then(warmUp);
  });
});
