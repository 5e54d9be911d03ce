// @ts-check
/** The ways in which onnxruntime-web runs a model, and why this browser lacks one of them. */

/**
 * Answer of this browser. `why`: the reason why it can't be tried here; empty if it can.
 * `note`: what a reader of its row has to know.
 *
 * @typedef {{ why: string, note: string }} Found
 */

/** `size`: megabytes that are loaded for it. @typedef {{ name: string, title: string, size: number, look: () => Promise<Found> }} Provider */

/** The navigator, with parts that TypeScript does not know. @type {any} */
const browser = navigator;

/** @type {Provider[]} */
export const providers = [
  { name: 'wasm', title: 'WASM', size: 14, look: async () => ({ why: '', note: '' }) },
  { name: 'webgpu', title: 'WebGPU', size: 27, look: adapter },
  { name: 'webnn', title: 'WebNN', size: 27, look: context },
];

/** @returns {Promise<Found>} */
async function adapter() {
  if (!browser.gpu) return { why: 'This browser has no WebGPU, or switches it off.', note: '' };
  const found = await browser.gpu.requestAdapter();
  if (!found) return { why: 'This browser has WebGPU, but finds no graphics processor for it.', note: '' };
  const { vendor = '', architecture = '', isFallbackAdapter = false } = found.info ?? {};
  const name = [vendor, architecture].filter(Boolean).join(' ') || 'a graphics processor without a name';
  return { why: '', note: isFallbackAdapter ? `${name}, in software: its times say nothing about graphics processors` : name };
}

/** @returns {Promise<Found>} */
async function context() {
  if (!browser.ml) return { why: 'This browser has no WebNN, or switches it off.', note: '' };
  try {
    (await browser.ml.createContext()).destroy?.();
    return { why: '', note: 'on the device that the runtime takes first, the processor' };
  } catch (error) {
    return { why: `This browser has WebNN, but can’t use it: ${/** @type {Error} */ (error).message}`, note: '' };
  }
}
