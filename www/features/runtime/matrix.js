// @ts-check
/** The matrix as a JSON file: runtime, provider, and what was tried. Pure. */

/** @import { Check, Tried } from './state.js' */

/** @param {Tried | null} tried @param {string} provider */
function entry(tried, provider) {
  if (!tried) return null;
  if (tried.error) return { loads: false, error: tried.error };
  const [median, low, high] = tried.times ?? [null, null, null];
  return {
    loads: true, loadMs: tried.loadTime, medianMs: median, lowMs: low, highMs: high,
    ...(provider === 'wasm' ? {} : { fellBack: tried.placement ? tried.placement.fallen : 'not known', nodesOfProvider: tried.placement ? tried.placement.own.length : 'not known' }),
    outputs: tried.outputs.map(({ name, octet, float, same, parts, rounded }) => ({ name, octetDecibels: finite(octet), floatDecibels: float === null ? null : finite(float), sameAnswer: same, differs: parts && !rounded, ...(rounded ? { roundingAddsUp: true } : {}) })),
  };
}

/** @param {number} value @returns {number | string} */
const finite = (value) => (Number.isFinite(value) ? value : 'not comparable');

/** @param {Check} found */
export function matrixText({ name, samples, runs, rows, culprit }) {
  return JSON.stringify({
    model: name, samples, runs,
    rows: rows.map(({ provider, version, threads, why, note, float, quantized }) => (quantized
      ? { runtime: 'onnxruntime-web', version, provider, threads, ...(note ? { note } : {}), float: entry(float, provider), quantized: entry(quantized, provider) }
      : { runtime: 'onnxruntime-web', provider, notTried: why })),
    ...(culprit?.found ? { firstWrongNode: { node: culprit.found.node, operator: culprit.found.operator, output: culprit.found.output, alone: culprit.found.alone } } : {}),
  }, null, 2);
}
