// @ts-check
/**
 * The float graph as it is quantized, and the quantized graph. Both are fetched when a view needs
 * them.
 */

import { effect, signal, untracked } from '../library/signals.js';
import { aborted, sentence } from './messages.js';
import { done, model, modelChanged } from './page.js';
import { start } from './session.js';

/** @import { GraphView, NodeView } from '../types.js' */

/**
 * @typedef {object} Indexed a graph with who makes and who uses each value
 * @property {GraphView} graph
 * @property {Map<string, NodeView>} byName
 * @property {Map<string, NodeView>} makers
 * @property {Map<string, NodeView[]>} users
 */

/** @typedef {{ indexed: Indexed | null, failure: string }} Known */

/** @type {import('../library/signals.js').Signal<Known>} */
export const floatGraph = signal({ indexed: null, failure: '' });
/** @type {import('../library/signals.js').Signal<Known>} */
export const quantizedGraph = signal({ indexed: null, failure: '' });

/** @param {GraphView} graph @returns {Indexed} */
export function index(graph) {
  const byName = new Map();
  const makers = new Map();
  /** @type {Map<string, NodeView[]>} */
  const users = new Map();
  for (const node of graph.nodes) {
    byName.set(node.name, node);
    for (const output of node.outputs) makers.set(output, node);
    for (const input of node.inputs) {
      const known = users.get(input);
      if (known) known.push(node);
      else users.set(input, [node]);
    }
  }
  return { graph, byName, makers, users };
}

/** True once a view needs the graphs. */
const wanted = signal(false);
/** True once a view shows the quantized graph. */
const bothWanted = signal(false);

/** @param {{ both?: boolean }} [how] */
export function needGraphs({ both = false } = {}) {
  wanted.value = true;
  if (both) bothWanted.value = true;
}

/** @param {import('../library/signals.js').Signal<Known>} where @param {() => Promise<GraphView>} read @param {() => boolean} still */
async function fetch(where, read, still) {
  try {
    const graph = await read();
    if (still()) where.value = { indexed: index(graph), failure: '' };
  } catch (error) {
    if (still() && !aborted(error)) where.value = { indexed: null, failure: sentence(/** @type {Error} */ (error).message) };
  }
}

effect(() => {
  modelChanged.value;
  const open = model.value;
  if (!wanted.value) return;
  untracked(() => {
    floatGraph.value = { indexed: null, failure: '' };
    if (!open || open.wanted.length > 0) return;
    const changes = modelChanged.peek();
    void fetch(floatGraph, () => open.graph(), () => model.peek() === open && modelChanged.peek() === changes);
  });
});

effect(() => {
  const now = done.value;
  if (!bothWanted.value) return;
  untracked(() => {
    if (!now) {
      quantizedGraph.value = { indexed: null, failure: '' };
      return;
    }
    const read = async () => (await start()).graphOf(now.result.file);
    void fetch(quantizedGraph, read, () => done.peek() === now);
  });
});
