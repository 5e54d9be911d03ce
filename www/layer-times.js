// @ts-check
/** What the layers of a run took, so that they add up to what is told of the run. Pure. */

/** @import { Run as Timed } from './types.js' */
/** @import { Figures } from './layers.js' */

/**
 * The time of each layer in the median run, so that layers and what lies between them add up to the one figure that is told of a run.
 * (Medians of layers don't add up: where a machine is busy with other things they are half of it. Means do, and give the shares.)
 *
 * @param {Pick<Timed, 'layers' | 'totals'>} run
 */
export function layerTimes({ layers, totals }) {
  const { mean, median } = totals.total;
  const scale = mean > 0 ? median / mean : 1;
  return { layers: layers.map((layer) => ({ ...layer, took: layer.ms.mean * scale })), outside: totals.outsideMs * scale, total: median };
}

/** @typedef {ReturnType<typeof layerTimes>} LayerTimes */

/** A layer stands for all nodes that were fused into it; its time is shown at the first. @param {LayerTimes} float @param {LayerTimes} quantized @returns {Figures} */
export function timesByNode(float, quantized) {
  /** @type {Figures} */
  const found = {};
  for (const { nodes, took } of float.layers) if (nodes[0]) found[nodes[0]] = { floatMs: took };
  for (const { nodes, took, ownBytes, liveBytes, calls } of quantized.layers) {
    if (!nodes[0]) continue;
    const { floatMs } = found[nodes[0]] ?? {};
    found[nodes[0]] = {
      ...(floatMs === undefined ? {} : { floatMs }), intMs: took, ...(floatMs ? { ratio: took / floatMs } : {}), ownKb: ownBytes / 1000, liveKb: liveBytes / 1000, calls, fused: nodes.length,
    };
  }
  return found;
}
