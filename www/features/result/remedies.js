// @ts-check
/** Changes of several layers at once. Pure. */

/** @import { Settings } from '../../types.js' */

/**
 * The document with a change of these layers.
 *
 * @param {Settings} document
 * @param {string[]} layers
 * @param {Record<string, unknown>} change
 * @returns {Settings}
 */
export function withAll(document, layers, change) {
  const { by_node = {} } = document;
  return { ...document, by_node: { ...by_node, ...Object.fromEntries(layers.map((name) => [name, { ...by_node[name], ...change }])) } };
}
