// @ts-check
/**
 * The drawing of a graph. Pairs of QuantizeLinear and DequantizeLinear become a badge on the node
 * before them, so that the float model and the quantized one look alike. The layout worker computes
 * positions.
 */

/** @import { Indexed } from '../../state/graphs.js' */
/** @import { LayoutResult, NodeView } from '../../types.js' */

/** @typedef {{ name: string, operator: string, badge: string, width: number }} Box a node that is drawn; without a name: an input or output */
/** @typedef {{ boxes: Box[], edges: [number, number][], before: number[][], after: number[][] }} Drawing */

export const boxHeight = 38;
/**
 * Below opset 21, 16-bit integers use ONNX Runtime's own operators.
 *
 * @param {NodeView | undefined} node
 * @param {string} operator
 */
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
  /** The integer type that a value is quantized to, from its zero point. @param {string} value */
  const badge = (value) => {
    const pair = (users.get(value) ?? []).find((node) => is(node, 'QuantizeLinear'));
    const element = pair && graph.values[pair.inputs[2] ?? '']?.element;
    return element ? element.toLowerCase() : pair ? 'uint8' : '';
  };
  /** The value before any Q/DQ pairs. @param {string} value */
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
    // A layout can't be interrupted: its worker is terminated, and the next graph starts another.
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
