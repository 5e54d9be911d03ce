// @ts-check
/** Figures of nodes, by the name of the node and of the measure. Pure. */

/** @import { Comparison } from '../../types.js' */

/** @typedef {Record<string, Record<string, number>>} Figures what was measured of each node, by its name and the name of the measure */

/** @param {Comparison} result @returns {Figures} */
export function errorsByNode(result) {
  return Object.fromEntries(result.layers.map(({ layer, added, accumulated, weightsOnly, activationsOnly, harm, clipped }) => [layer, {
    harm: harm * 100, ...(added ? { sqnr: added.sqnr } : {}), ...(weightsOnly === null ? {} : { weightsOnly }), ...(activationsOnly === null ? {} : { activationsOnly }),
    reached: accumulated.sqnr, maxDifference: accumulated.max, clipped: clipped * 100,
  }]));
}

/**
 * Merges the figures of both, node by node.
 *
 * @param {Figures} one
 * @param {Figures} other
 * @returns {Figures}
 */
export function mergeFigures(one, other) {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...names].map((name) => [name, { ...one[name], ...other[name] }]));
}
