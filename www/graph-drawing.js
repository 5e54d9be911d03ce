// @ts-check
/**
 * A graph as it is drawn: pairs of QuantizeLinear and DequantizeLinear are folded into a badge on what they stand behind, so that
 * the float model and the quantized one look alike. Places come from the layout worker.
 */

/** @import { Indexed } from './graphs.js' */
/** @import { LayoutResult, NodeView } from './types.js' */

/** @typedef {{ name: string, operator: string, badge: string, width: number }} Box a node that is drawn; without a name: an input or output */
/** @typedef {{ boxes: Box[], edges: [number, number][], before: number[][], after: number[][] }} Drawing */

export const boxHeight = 38;
/** Integers of 16 bits are written with ONNX Runtime's own operators below operator set 21. @param {NodeView | undefined} node @param {string} operator */
const is = (node, operator) => node?.operator === operator || node?.operator === `com.microsoft::${operator}`;
const isPair = (/** @type {NodeView | undefined} */ node) => is(node, 'QuantizeLinear') || is(node, 'DequantizeLinear');

/** @param {Indexed} indexed @returns {Drawing} */
export function drawing({ graph, makers, users }) {
  /** @type {Box[]} */
  const boxes = [];
  /** @type {Map<string, number>} the box that a value comes from */
  const from = new Map();
  /** @type {[number, number][]} */
  const edges = [];
  const box = (/** @type {string} */ name, /** @type {string} */ operator, /** @type {string} */ badge) =>
    boxes.push({ name, operator, badge, width: Math.max(124, 7.2 * Math.max(operator.length, 3) + 28 + 7 * badge.length) }) - 1;
  /** The integers a value is turned into, as its zero point has them. @param {string} value */
  const badge = (value) => {
    const pair = (users.get(value) ?? []).find((node) => is(node, 'QuantizeLinear'));
    const element = pair && graph.values[pair.inputs[2] ?? '']?.element;
    return element ? element.toLowerCase() : pair ? 'uint8' : '';
  };
  /** Behind pairs, the value that went in. @param {string} value */
  const source = (value) => {
    let at = value;
    for (let maker = makers.get(at); isPair(maker); maker = makers.get(at)) at = maker?.inputs[0] ?? '';
    return at;
  };
  for (const name of graph.inputs) from.set(name, box('', name, badge(name)));
  for (const node of graph.nodes) {
    if (isPair(node)) continue;
    const to = box(node.name, node.operator, badge(node.outputs[0] ?? ''));
    for (const output of node.outputs) from.set(output, to);
    for (const start of new Set(node.inputs.map((input) => from.get(source(input))))) if (start !== undefined) edges.push([start, to]);
  }
  for (const name of graph.outputs) {
    const start = from.get(source(name));
    if (start !== undefined) edges.push([start, box('', name, '')]);
  }
  const before = boxes.map(() => /** @type {number[]} */ ([]));
  const after = boxes.map(() => /** @type {number[]} */ ([]));
  for (const [start, to] of edges) {
    before[to].push(start);
    after[start].push(to);
  }
  return { boxes, edges, before, after };
}

/** @type {Worker | null} */
let worker = null;
let next = 1;

/** @param {Drawing} what @param {AbortSignal} signal @returns {Promise<LayoutResult>} */
export function laidOut(what, signal) {
  return new Promise((resolve, reject) => {
    worker ??= new Worker(new URL('./layout-worker.js', import.meta.url), { type: 'module', name: 'layout' });
    const mine = worker;
    const id = next++;
    const end = () => {
      mine.removeEventListener('message', answer);
      signal.removeEventListener('abort', stop);
    };
    const answer = (/** @type {MessageEvent} */ { data }) => {
      if (data.id !== id) return;
      end();
      if (data.failure) reject(new Error(`the graph could not be laid out (${data.failure})`));
      else resolve(data);
    };
    // A layout can't be asked to stop: its worker is ended, and another begins with the next graph.
    const stop = () => {
      end();
      mine.terminate();
      if (worker === mine) worker = null;
      reject(new DOMException('Another graph is wanted.', 'AbortError'));
    };
    mine.addEventListener('message', answer);
    mine.onerror = (event) => {
      event.preventDefault();
      end();
      reject(new Error(event.message || 'the layout worker could not be loaded'));
    };
    signal.addEventListener('abort', stop, { once: true });
    mine.postMessage({ id, sizes: what.boxes.map((one) => [one.width, boxHeight]), edges: what.edges });
  });
}
