// @ts-check
/** Times of layers, scaled so that they add up to the time of the run. Pure. */

import { plural } from '../../library/format.js';

/** @import { Run as Timed } from '../../types.js' */
/** @import { Figures } from './figures.js' */

/**
 * The time of each layer in the median run. Layers and the time between them add up to the run's
 * figure. (Medians of layers don't add up: on a busy machine their sum was half of the run. Means
 * do, and give the shares.)
 *
 * @param {Pick<Timed, 'layers' | 'totals'>} run
 */
export function layerTimes({ layers, totals }) {
  const { mean, median } = totals.total;
  const scale = mean > 0 ? median / mean : 1;
  return { layers: layers.map((layer) => ({ ...layer, took: layer.ms.mean * scale })), outside: totals.outsideMs * scale, total: median };
}

/** @typedef {ReturnType<typeof layerTimes>} LayerTimes */

/**
 * A layer contains all nodes fused into it; its time is shown at the first one.
 *
 * @param {LayerTimes} float
 * @param {LayerTimes} quantized
 * @returns {Figures}
 */
export function timesByNode(float, quantized) {
  /** @type {Figures} */
  const result = {};
  for (const { nodes, took } of float.layers) if (nodes[0]) result[nodes[0]] = { floatMs: took };
  for (const { nodes, took, ownBytes, liveBytes, calls } of quantized.layers) {
    if (!nodes[0]) continue;
    const { floatMs } = result[nodes[0]] ?? {};
    result[nodes[0]] = {
      ...(floatMs === undefined ? {} : { floatMs }), intMs: took, ...(floatMs ? { ratio: took / floatMs } : {}), ownKb: ownBytes / 1000, liveKb: liveBytes / 1000, calls, fused: nodes.length,
    };
  }
  return result;
}

/**
 * The numbers of threads on which both models ran, in words. Each uses the number that is fastest
 * for it at present.
 *
 * @param {Pick<Timed['totals'], 'threads' | 'maxThreads'>} float
 * @param {Pick<Timed['totals'], 'threads' | 'maxThreads'>} quantized
 */
export function usedThreads(float, quantized) {
  const on = (/** @type {typeof float} */ { threads, maxThreads }) => (threads < maxThreads ? `${threads} of ${maxThreads} threads` : plural(threads, 'thread'));
  return on(float) === on(quantized) ? `both on ${on(float)}` : `on ${on(quantized)}, float on ${on(float)}`;
}
