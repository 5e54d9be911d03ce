// @ts-check
/**
 * Lays out a graph, layer below layer, in its own worker. Large graphs take seconds, and
 * calibration must not wait for them.
 *
 * dagre recurses once per layer; in a worker, a chain of 2,000 overflowed the stack. A deep graph
 * is cut into slabs of layers. Each slab is laid out alone and placed below the one before, centred
 * under its inputs.
 */

/** @import { LayoutResult, LayoutRequest } from '../../types.js' */

const scope = /** @type {DedicatedWorkerGlobalScope} */ (/** @type {unknown} */ (self));

/** Number of layers from which a graph is cut into slabs. */
const deep = 400;
/** Number of layers in a slab. */
const slab = 150;
const [apart, below] = [18, 30];

/**
 * The layer of each node, one below its lowest input. Edges are sorted by their target.
 *
 * @param {LayoutRequest} graph
 */
function layersOf({ sizes, edges }) {
  const layers = new Int32Array(sizes.length);
  for (const [from, to] of edges) layers[to] = Math.max(layers[to], layers[from] + 1);
  return layers;
}

/** @param {LayoutRequest} what @param {any} dagre @returns {LayoutResult} */
function laid({ id, sizes, edges }, { Graph, layout }) {
  const layers = layersOf({ id, sizes, edges });
  const depth = layers.reduce((most, layer) => Math.max(most, layer), 0) + 1;
  const height = depth < deep ? depth : slab;
  const slabs = Math.ceil(depth / height);
  const slabOf = (/** @type {number} */ node) => Math.floor(layers[node] / height);
  /** @type {any[]} */
  const graphs = Array.from({ length: slabs }, () => {
    const graph = new Graph({ multigraph: true });
    graph.setGraph({ nodesep: apart, ranksep: below, edgesep: 10, marginx: 20, marginy: below / 2, ranker: sizes.length > 800 ? 'longest-path' : 'network-simplex' });
    return graph.setDefaultEdgeLabel(() => ({}));
  });
  /** @type {number[][]} */
  const members = graphs.map(() => []);
  sizes.forEach(([width, tall], at) => {
    graphs[slabOf(at)].setNode(String(at), { width, height: tall });
    members[slabOf(at)].push(at);
  });
  edges.forEach(([from, to], at) => {
    if (slabOf(from) === slabOf(to)) graphs[slabOf(from)].setEdge(String(from), String(to), {}, String(at));
  });

  const nodes = new Float32Array(sizes.length * 2);
  const offsets = graphs.map(() => ({ x: 0, y: 0 }));
  let bottom = 0;
  graphs.forEach((graph, index) => {
    layout(graph);
    // Shift to the mean position of the slab's inputs.
    const crossing = edges.filter(([from, to]) => slabOf(to) === index && slabOf(from) < index);
    const shift = crossing.reduce((sum, [from, to]) => sum + nodes[from * 2] - graph.node(String(to)).x, 0) / Math.max(1, crossing.length);
    offsets[index] = { x: shift, y: bottom };
    for (const at of members[index]) {
      const { x, y } = graph.node(String(at));
      nodes.set([x + shift, y + bottom], at * 2);
    }
    bottom += graph.graph().height ?? 0;
  });

  const corners = edges.map(([from, to], at) => {
    const index = slabOf(from);
    if (index !== slabOf(to)) {
      return new Float32Array([nodes[from * 2], nodes[from * 2 + 1] + sizes[from][1] / 2, nodes[to * 2], nodes[to * 2 + 1] - sizes[to][1] / 2]);
    }
    /** @type {{ points: { x: number, y: number }[] }} */
    const { points } = graphs[index].edge(String(from), String(to), String(at));
    return new Float32Array(points.flatMap(({ x, y }) => [x + offsets[index].x, y + offsets[index].y]));
  });
  // A slab may have moved to negative positions; shift everything back into view.
  const left = Math.min(0, ...offsets.map(({ x }) => x));
  for (let at = 0; at < nodes.length; at += 2) nodes[at] -= left;
  for (const line of corners) for (let at = 0; at < line.length; at += 2) line[at] -= left;
  const width = Math.max(0, ...graphs.map((graph, index) => (graph.graph().width ?? 0) + offsets[index].x - left));
  return { id, nodes, edges: corners, width, height: bottom };
}

scope.addEventListener('message', async (event) => {
  const what = /** @type {LayoutRequest} */ (event.data);
  try {
    scope.postMessage(laid(what, await import(new URL('../../../pkg/vendor/dagre.js', import.meta.url).href)));
  } catch (error) {
    scope.postMessage({ id: what.id, failure: String(/** @type {any} */ (error)?.message ?? error) });
  }
});
