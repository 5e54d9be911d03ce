// The ten lines that each surrounding runs: they quantize a small model and run the result. The
// weights are multiples of 1/8, so every engine gives the same bytes.

import { exact } from '../e2e/model.mjs';

export const model = exact();

/** In a page: an expression that loads the model, and a statement that leaves the result. */
export const load = "new Uint8Array(await (await fetch('/exact.onnx')).arrayBuffer())";
export const tell = 'globalThis.result = { ...result, isolated: globalThis.crossOriginIsolated };';

/**
 * A module that quantizes the model.
 *
 * @param {string} from what it imports
 * @param {string} report a statement that tells `result`
 * @param {string} load an expression of the model's bytes
 */
export const program = (from, report, load) => `
import { openModel, createSession, compare, stopEngine } from '${from}';
const bytes = ${load};
const data = (seed) => Float32Array.from({ length: 48 }, (_, at) => ((at * 7 + seed * 3) % 16) / 8 - 1);
const samples = [0, 1, 2, 3].map((seed) => ({ x: { shape: [1, 3, 4, 4], data: data(seed) } }));
const model = await openModel(bytes);
const { model: quantized, report } = await model.quantize({}, samples);
const session = await createSession(quantized);
const { y } = await session.run(samples[0]);
const { samples: compared } = await compare(bytes, quantized, samples);
const refused = await openModel(new Uint8Array(9)).catch((error) => error.kind);
const result = { bytes: [...quantized], shape: y.shape, y: [...y.data], compared, refused, said: report.includes('quantization') };
await stopEngine();
${report}
`;
