// @ts-check
/** Lays a graph out, layer below layer, in a worker of its own: large graphs take seconds, and calibration must not wait for them. */

/** @import { Laid, ToLay } from './types.js' */

const scope = /** @type {DedicatedWorkerGlobalScope} */ (/** @type {unknown} */ (self));

scope.addEventListener('message', async (event) => {
  const { id, sizes, edges } = /** @type {ToLay} */ (event.data);
  try {
    const { Graph, layout } = await import(new URL('../pkg/vendor/dagre.js', import.meta.url).href);
    const graph = new Graph({ multigraph: true });
    graph.setGraph({ nodesep: 18, ranksep: 30, edgesep: 10, marginx: 20, marginy: 20, ranker: sizes.length > 800 ? 'longest-path' : 'network-simplex' });
    graph.setDefaultEdgeLabel(() => ({}));
    sizes.forEach(([width, height], at) => graph.setNode(String(at), { width, height }));
    edges.forEach(([from, to], at) => graph.setEdge(String(from), String(to), {}, String(at)));
    layout(graph);
    const nodes = new Float32Array(sizes.length * 2);
    sizes.forEach((_, at) => {
      const { x, y } = graph.node(String(at));
      nodes.set([x, y], at * 2);
    });
    const corners = edges.map(([from, to], at) => {
      /** @type {{ points: { x: number, y: number }[] }} */
      const { points } = graph.edge(String(from), String(to), String(at));
      return new Float32Array(points.flatMap(({ x, y }) => [x, y]));
    });
    const { width = 0, height = 0 } = graph.graph();
    /** @type {Laid} */
    const laid = { id, nodes, edges: corners, width, height };
    scope.postMessage(laid);
  } catch (error) {
    scope.postMessage({ id, failure: String(/** @type {any} */ (error)?.message ?? error) });
  }
});
