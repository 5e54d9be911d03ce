// @ts-check
/**
 * The worker, the only place where wasm runs. It answers calls one at a time, in order, and holds
 * the sessions. It may be terminated at any time; the page then starts another and opens the file
 * again.
 */

import { loadEngine, loadTokenizers } from './builds.js';
import { slot } from './shared-memory.js';

/** @import { NamedFile, OutputTensor, Progress, SampleRef, SampleSettings, Settings, Shared } from './types.js' */
/** @import { Handlers, Request } from './calls.js' */
/** @typedef {typeof import('../pkg/threads/octet.js')} Wasm */
/** @typedef {import('../pkg/threads/octet.js').Session} Session */

/**
 * Samples of up to this many bytes are queued before a thread is free, one per thread, as they run
 * only for a short time. Larger samples run long enough for the next one to be queued when one
 * ends; then one sample waits, for any number of threads.
 */
const light = 1 << 18;

/** Interval in milliseconds of memory reports while samples run. */
const interval = 100;

/** Time in milliseconds that the engine warms up after loading, unless a call arrives. */
const warmth = 1600;

const scope = /** @type {DedicatedWorkerGlobalScope} */ (/** @type {unknown} */ (self));

/** @type {Wasm | null} */
let wasm = null;
let threads = 1;
/** Addresses of the wasm files, where the worker can't find them itself. @type {Record<string, string> | undefined} */
let wasmFiles;
/** @type {Map<number, Session>} */
const sessions = new Map();
/** Models that run many times, with their plans. @type {Map<number, import('../pkg/threads/octet.js').Inference>} */
const inferences = new Map();

/** @returns {Wasm} */
function loaded() {
  if (!wasm) throw new Error('The engine is not loaded yet.');
  return wasm;
}

/** @param {number} key @returns {Session} */
function session(key) {
  const found = sessions.get(key);
  if (!found) throw new Error('This model is not open.');
  return found;
}

/** Models of any size; loaded when the first one is opened. */
const streamed = () => import('./streamed-worker.js');

/** @typedef {(progress: Progress) => void} Report */

/** @type {Handlers} */
const calls = {
  async start(options, report) {
    wasmFiles = options.files;
    const module = await loadEngine(options.variant, wasmFiles);
    module.install();
    wasm = module;
    const pool = /** @type {{ initThreadPool?: (count: number) => Promise<unknown> }} */ (module);
    if (options.threads > 1 && scope.crossOriginIsolated && pool.initThreadPool) {
      report({ stage: 'Starting the threads' });
      await pool.initThreadPool(options.threads).catch((cause) => {
        throw Object.assign(new Error(String(cause?.message ?? cause)), { kind: 'threads' });
      });
      threads = options.threads;
    }
    /** @type {Shared | null} */
    const shared = scope.crossOriginIsolated && options.variant === 'threads'
      ? { control: module.control(), panic: module.panicText() }
      : null;
    return { shared };
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

  demoSamples({ key, count, seed }) {
    /** @type {{ path: string, bytes: Uint8Array<ArrayBuffer> }[]} */
    const made = session(key).demoSamples(count, seed);
    return made.map(({ path, bytes }) => ({ path, blob: new Blob([bytes]) }));
  },

  async calibrate({ key, files, method, rounding, equalize, tuning, samples }, report, enough) {
    const open = session(key);
    const all = samplesOf(files);
    loaded().resetControl();
    report({ stage: 'Preparing the model', memory: memory() });
    open.beginCalibration(samples, equalize ?? false);
    const seen = await feed(open, all, 'Calibrating', report, enough);
    // Extra passes run over the same samples as the first.
    while (open.beginFurtherPass(method, rounding === 'gptq')) await feed(open, all.slice(0, seen), 'Extra pass', report, async () => false);
    const summary = { ...open.finishCalibration(method), given: all.length };
    if (tuning) await tune(open, all.slice(0, seen), tuning, samples, report);
    return summary;
  },

  async forecast({ key, files, method, samples, settings }) {
    loaded().resetControl();
    const all = samplesOf(files);
    const [first] = all;
    if (!first) throw Object.assign(new Error('There is no sample among these files.'), { kind: 'sample' });
    // Files of the next samples are read while others run.
    const ahead = threads === 1 ? 1 : underWay(first) + 1;
    return await session(key).forecast(first.name, first.files, samples, all.length, ahead, method, settings);
  },

  quantize({ key, settings }, report) {
    report({ stage: 'Writing the quantized model', memory: memory() });
    const open = session(key);
    const { model, summary } = open.quantize(settings);
    // The Blob is created here, as a large one would block the page.
    return { model, file: new Blob([model], { type: 'application/octet-stream' }), summary, report: open.report(), memory: memory() };
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

  async compare({ key, quantized, files, samples, labels, split }, report, enough) {
    const open = session(key);
    const all = samplesOf(files);
    loaded().resetControl();
    report({ stage: 'Comparing', done: 0, of: all.length, unit: 'samples', memory: memory() });
    await open.beginComparison(quantized, split);
    for (const [index, { name, files: parts }] of all.entries()) {
      if (await enough()) throw stopped();
      await open.compareSample(name, parts, samples, labels[name]);
      report({ stage: 'Comparing', done: index + 1, of: all.length, unit: 'samples', memory: memory() });
    }
    return open.finishComparison();
  },

  async openInference({ key, name, blob, data }) {
    const opened = await loaded().Inference.open(name, blob, data);
    inferences.set(key, opened);
    return opened.card();
  },

  infer({ key, inputs }) {
    const open = inferences.get(key);
    if (!open) throw Object.assign(new Error('This session is closed: create another one.'), { kind: 'order' });
    return open.run(inputs);
  },

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
  async tokenize({ texts, tokenizer, config, settings, length }) {
    const { Tokenizer } = await loadTokenizers(wasmFiles);
    const bytes = async (/** @type {NamedFile} */ { blob }) => new Uint8Array(await blob.arrayBuffer());
    const made = new Tokenizer(tokenizer.path, await bytes(tokenizer), config?.path ?? '', config ? await bytes(config) : undefined);
    /** @type {NamedFile[]} */
    const files = [];
    const notes = [];
    try {
      for (const file of texts) {
        const { texts: all, cut, samples } = made.tokenize(file.path, await bytes(file), settings, length ?? undefined);
        files.push(...samples.map((/** @type {{ path: string, bytes: Uint8Array<ArrayBuffer> }} */ one) => ({ path: one.path, blob: new Blob([one.bytes]) })));
        if (samples.length < all) notes.push(`${file.path}: ${samples.length} of ${all} texts are used, spread evenly over the file.`);
        if (cut > 0) notes.push(`${file.path}: ${cut} of ${samples.length} texts are cut at the maximum length.`);
      }
    } finally {
      made.free();
    }
    return { files, notes };
  },

  graphOf: ({ blob }) => loaded().graphOf('the model', blob),

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

  close({ key }) {
    sessions.get(key)?.free();
    sessions.delete(key);
  },

  memory: () => memory(),

  presets: () => loaded().imagePresets(),
};

/** @param {Report} report @returns {(done: number, of: number) => void} */
function reading(report) {
  return (done, of) => report({ stage: 'Reading the file', done, of, unit: 'bytes' });
}

/**
 * Learns constants from the samples. The page reads the number of layers done from the control words.
 *
 * @param {Session} open
 * @param {{ name: string, files: NamedFile[] }[]} all
 * @param {Settings} settings
 * @param {SampleSettings} samples
 * @param {Report} report
 */
async function tune(open, all, settings, samples, report) {
  report({ stage: 'Preparing the fine-tuning', memory: memory() });
  const layers = open.beginTuning(settings);
  const most = typeof settings.finetune === 'object' ? settings.finetune?.data_size ?? all.length : all.length;
  for (const { name, files } of all.slice(0, most)) await open.addTuningSample(name, files, samples);
  Atomics.store(loaded().control(), slot.done, 0);
  report({ stage: 'Fine-tuning', done: 0, of: layers, unit: 'layers', memory: memory() });
  open.tune();
}

/**
 * Runs all samples once. Each is queued early enough that no thread waits, while the files of the
 * next are read.
 *
 * @param {Session} open
 * @param {{ name: string, files: NamedFile[] }[]} all
 * @param {string} stage
 * @param {Report} report
 * @param {() => Promise<boolean>} enough asked before each sample but the first
 * @returns {Promise<number>} how many were run
 */
async function feed(open, all, stage, report, enough) {
  // The page reads the sample count from there, too.
  const control = loaded().control();
  Atomics.store(control, slot.done, 0);
  let [told, seen, shown] = [0, 0, 0];
  const tell = () => {
    told = performance.now();
    const done = Atomics.load(loaded().control(), slot.done);
    // There may be hundreds of ranges, and samples of a millisecond.
    const due = done > seen && (told - shown > interval || done === all.length);
    if (due) [seen, shown] = [done, told];
    report({ stage, done, of: all.length, unit: 'samples', memory: memory(), ...(due && { ranges: open.rangesSoFar() }) });
  };
  const free = async (/** @type {number} */ limit) => {
    for (;;) {
      const before = Atomics.load(loaded().control(), slot.ended);
      if (open.samplesUnderWay() < limit) return;
      if (performance.now() - told > interval) tell();
      await ended(before);
    }
  };
  const read = (/** @type {number} */ at) => {
    const reading = at < all.length ? loaded().Sample.read(all[at].name, all[at].files) : null;
    reading?.catch(() => {}); // said when it is waited for
    return reading;
  };
  tell();
  let coming = read(0);
  let begun = 0;
  try {
    for (let at = 0; coming; at += 1) {
      const sample = await coming;
      await free(underWay(all[at]));
      if (at > 0 && await enough()) {
        sample.free(); // read and not wanted any more
        break;
      }
      begun = at + 1;
      if (!open.beginSample(sample)) break;
      if (threads === 1) tell();
      coming = read(at + 1);
    }
  } finally {
    await free(1);
  }
  open.settle();
  tell();
  return begun;
}

/**
 * The number of samples like this one that may be queued or running.
 *
 * @param {{ files: NamedFile[] }} sample
 */
function underWay({ files }) {
  const bytes = files.reduce((sum, { blob }) => sum + blob.size, 0);
  return threads > 1 && bytes <= light ? 2 * threads : threads;
}

/**
 * Waits until the counter of ended samples changes from `before`, or for a short time.
 *
 * @param {number} before
 */
function ended(before) {
  /** @type {any} */
  const atomics = Atomics;
  if (atomics.waitAsync) return atomics.waitAsync(loaded().control(), slot.ended, before, interval).value;
  return new Promise((resolve) => setTimeout(resolve, 4));
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
  calls.close({ key }, quiet, no);
}

const stopped = () => Object.assign(new Error('Stopped on request.'), { kind: 'stopped' });

function memory() {
  return loaded().memoryUsage();
}

/** @param {NamedFile[]} files @returns {{ name: string, files: NamedFile[] }[]} */
function samplesOf(files) {
  const byPath = new Map(files.map((file) => [file.path, file]));
  /** @type {SampleRef[]} */
  const refs = loaded().group(files.map((file) => file.path));
  return refs.map(({ name, parts }) => ({
    name,
    files: parts.flatMap((path) => byPath.get(path) ?? []),
  }));
}

/** @param {any} error @returns {{ kind: string, message: string }} */
function failure(error) {
  if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
    const said = wasm ? new TextDecoder().decode(wasm.panicText().slice()).replace(/\0+$/, '') : '';
    return { kind: 'crash', message: said || String(error.message) };
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
  return call === 'infer' ? value.map((/** @type {OutputTensor} */ { data }) => data.buffer) : [];
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
    if (call === 'start' && wasm) line = line.then(warmUp);
  });
});
