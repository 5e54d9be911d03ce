// @ts-check
/// <reference lib="webworker" />
/**
 * onnxruntime-web in a worker of its own, with one provider. It loads from this origin when the
 * worker starts, and ends with the worker.
 */

/** @import { InputTensor, NamedFile, OutputTensor } from '../../types.js' */

const scope = /** @type {DedicatedWorkerGlobalScope} */ (/** @type {unknown} */ (self));

/** The module with WebGPU and WebNN, and its wasm. @type {[string, string]} */
const larger = ['ort.webgpu.min.mjs', 'ort-wasm-simd-threaded.asyncify'];

/** The module of each provider, and its wasm. @type {Record<string, [string, string]>} */
const builds = { wasm: ['ort.wasm.min.mjs', 'ort-wasm-simd-threaded'], webgpu: larger, webnn: larger };

/** The log of the runtime while somebody wants it. @type {string[] | null} */
let log = null;
// The runtime keeps the console's functions when it loads.
for (const level of /** @type {const} */ (['log', 'warn', 'error'])) {
  const written = console[level].bind(console);
  console[level] = (...words) => (log ? void log.push(words.join(' ')) : written(...words));
}

/** A model of one Identity, with which the runtime starts its threads. */
const smallest = Uint8Array.from(atob('CAg6NwoQCgF4EgF5IghJZGVudGl0eRIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCAhAN'), (letter) => letter.charCodeAt(0));

/** @type {any} */
let ort;
/** @type {string} */
let provider;
/** Sessions by their number. @type {Map<number, any>} */
const sessions = new Map();

/** @type {Record<string, (args: any, told: (stage: 'loaded' | 'threads') => void) => Promise<any>>} */
const calls = {
  /** @param {{ provider: string, threads: number }} args */
  async start({ provider: wanted, threads }, told) {
    provider = wanted;
    const folder = new URL('../../../pkg/vendor/onnxruntime-web/', import.meta.url).href;
    const [module, name] = builds[provider];
    const answer = await fetch(`${folder}${name}.wasm`);
    if (!answer.ok) throw new Error(`The file ${name}.wasm could not be loaded (status ${answer.status}).`);
    ort = await import(`${folder}${module}`);
    ort.env.wasm.wasmBinary = await answer.arrayBuffer();
    ort.env.wasm.wasmPaths = folder;
    ort.env.wasm.numThreads = scope.crossOriginIsolated ? threads : 1;
    ort.env.logLevel = 'error';
    told('loaded');
    await (await ort.InferenceSession.create(smallest, { executionProviders: ['wasm'] })).release();
    told('threads');
    if (provider !== 'wasm') await (await ort.InferenceSession.create(smallest, { executionProviders: [provider] })).release();
    return { version: ort.env.versions.web ?? ort.env.versions.common, threads: ort.env.wasm.numThreads };
  },

  /** @param {{ key: number, file: Blob, data: NamedFile[] }} args */
  async create({ key, file, data }) {
    const began = performance.now();
    sessions.set(key, await session(file, data));
    return performance.now() - began;
  },

  /**
   * The log of a further load, which says the place of each node.
   *
   * @param {{ file: Blob, data: NamedFile[] }} args
   */
  async log({ file, data }) {
    log = [];
    try {
      await (await session(file, data, { logSeverityLevel: 0, logVerbosityLevel: 1 })).release();
      return log;
    } finally {
      log = null;
    }
  },

  /** @param {{ key: number, inputs: InputTensor[] }} args @returns {Promise<OutputTensor[]>} */
  async run({ key, inputs }) {
    const session = sessions.get(key);
    const outputs = await session.run(fed(session, inputs));
    return session.outputNames.map((/** @type {string} */ name) => output(name, outputs[name]));
  },

  /**
   * Times sessions in turn, so that a change of the machine's load meets all of them.
   *
   * @param {{ keys: number[], inputs: InputTensor[], runs: number, warmUp: number }} args
   */
  async time({ keys, inputs, runs, warmUp }) {
    const feeds = keys.map((key) => fed(sessions.get(key), inputs));
    /** @type {number[][]} */
    const times = keys.map(() => []);
    for (let run = -warmUp; run < runs; run += 1) {
      for (const [at, key] of keys.entries()) {
        const began = performance.now();
        await sessions.get(key).run(feeds[at]);
        if (run >= 0) times[at].push(performance.now() - began);
      }
    }
    return times;
  },

  /** @param {{ key: number }} args */
  async close({ key }) {
    await sessions.get(key)?.release();
    sessions.delete(key);
  },
};

/** @param {Blob} file @param {NamedFile[]} data @param {{ logSeverityLevel: number, logVerbosityLevel?: number }} [options] */
async function session(file, data, options = { logSeverityLevel: 3 }) {
  const externalData = await Promise.all(data.map(async ({ path, blob }) => ({ path, data: new Uint8Array(await blob.arrayBuffer()) })));
  const bytes = new Uint8Array(await file.arrayBuffer());
  return await ort.InferenceSession.create(bytes, { executionProviders: [provider], ...(externalData.length > 0 ? { externalData } : {}), ...options });
}

/**
 * Tensors of the runtime. Half-precision inputs come as floats and are rounded here.
 *
 * @param {any} session
 * @param {InputTensor[]} inputs
 */
function fed(session, inputs) {
  const types = new Map(session.inputMetadata?.map((/** @type {any} */ one) => [one.name, one.type]));
  const wanted = inputs.filter(({ name }) => session.inputNames.includes(name));
  return Object.fromEntries(wanted.map((input) => {
    const type = types.get(input.name) ?? /** @type {any} */ (input).element;
    const data = type === 'float16' && input.data instanceof Float32Array ? halves(input.data) : input.data;
    return [input.name, new ort.Tensor(type, data, input.shape)];
  }));
}

/** @param {string} name @param {any} tensor @returns {OutputTensor} */
function output(name, tensor) {
  const { type, dims, data } = tensor;
  return { name, element: type, shape: [...dims], data: type === 'float16' ? floats(data) : data };
}

/** @type {any} */
const Half = /** @type {any} */ (globalThis).Float16Array;

/** Rounds floats to half precision: to nearest, ties to even. @param {Float32Array} values */
function halves(values) {
  if (Half) return new Half(values);
  const bits = new Uint32Array(values.slice().buffer);
  return Uint16Array.from(bits, (whole) => {
    const sign = (whole >>> 16) & 0x8000;
    const size = whole & 0x7fffffff;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size >= 0x477ff000) return sign | 0x7c00;
    if (size < 0x38800000) {
      // Multiples of 2^-24: the addition rounds, as 0.5 has this step.
      const view = new Uint32Array(new Float32Array([new Float32Array(new Uint32Array([size]).buffer)[0] + 0.5]).buffer);
      return sign | (view[0] - 0x3f000000);
    }
    return sign | ((size - 0x38000000 + 0xfff + ((size >>> 13) & 1)) >>> 13);
  });
}

/** @param {any} data a Float16Array, or the bits of one */
function floats(data) {
  if (!(data instanceof Uint16Array)) return Float32Array.from(data);
  return Float32Array.from(data, (bits) => {
    const [sign, exponent, rest] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    if (exponent === 31) return rest > 0 ? NaN : sign * Infinity;
    return sign * (exponent > 0 ? 2 ** (exponent - 15) * (1 + rest / 1024) : 2 ** -24 * rest);
  });
}

/** Calls run in order: the runtime runs one session at a time. */
let line = Promise.resolve();

scope.addEventListener('message', (event) => {
  const { id, call, args } = event.data;
  line = line.then(async () => {
    try {
      scope.postMessage({ id, value: await calls[call](args, (stage) => scope.postMessage({ stage })) });
    } catch (error) {
      scope.postMessage({ id, failure: String(/** @type {any} */ (error)?.message ?? error) });
    }
  });
});
