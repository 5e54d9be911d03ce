// @ts-check
/**
 * The search of the first node that the runtime computes differently: the inputs agree, the output
 * does not. Values between the last that agree and the first that part are watched, some at a time.
 */

import { compared, decibels, roundedAlike } from './measures.js';

/** @import { GraphView, OutputTensor, SeenValue } from '../../types.js' */

/**
 * A value as Octet and the runtime computed it.
 *
 * @typedef {{ ours: OutputTensor, theirs: OutputTensor }} Pair
 */

/**
 * Both runtimes, as the search uses them. `watch` runs the whole model with further outputs.
 * `alone` runs the part between values that Octet computed and some outputs.
 *
 * @typedef {object} Runtimes
 * @property {(values: string[]) => Promise<Map<string, Pair>>} watch
 * @property {(inputs: OutputTensor[], outputs: string[]) => Promise<Map<string, Pair>>} alone
 */

/**
 * The node that was found. `nodes` are those that the runtime fuses with it; `alone`: it is wrong by
 * itself, too; `unlike`: decibels of its output.
 *
 * @typedef {object} Culprit
 * @property {string} node
 * @property {string} operator
 * @property {string} output
 * @property {string[]} nodes
 * @property {OutputTensor[]} inputs what Octet computed
 * @property {Pair} pair
 * @property {boolean} alone
 * @property {number} unlike
 * @property {number} rounds
 */

/** The number of values that are watched in one round. */
const watched = 12;

/** The number of operators that are run by themselves. */
const most = 24;

/** Noise between two runtimes that compute the same in floats: decibels. */
const same = 100;

/** Noise at which the search goes no further up: only rounding, though it may become large below. Decibels. */
const rounding = 60;

/** Operators that only change the form of a value. */
const forms = new Set(['QuantizeLinear', 'DequantizeLinear', 'Relu', 'Clip', 'Identity', 'Cast']);

/** The graph as the search reads it. @param {GraphView} graph */
function linked(graph) {
  const producers = new Map(graph.nodes.flatMap((node, place) => node.outputs.map((output) => /** @type {const} */ ([output, place]))));
  /** @type {Map<string, number[]>} */
  const consumers = new Map();
  for (const [place, node] of graph.nodes.entries()) {
    for (const input of node.inputs) consumers.set(input, [...(consumers.get(input) ?? []), place]);
  }
  /** Values that depend on the samples. */
  const live = new Set(graph.inputs);
  for (const node of graph.nodes) if (node.inputs.some((input) => live.has(input))) for (const output of node.outputs) live.add(output);
  return { producers, consumers, live };
}

/**
 * True for a value that exists in the fused model, too: not one between the nodes of a fused
 * operator, which would run unfused if it were watched.
 *
 * @param {GraphView} graph
 * @param {ReturnType<typeof linked>} links
 * @param {string} value
 */
function watchable(graph, { producers, consumers, live }, value) {
  const producer = producers.get(value);
  if (producer === undefined || !live.has(value)) return false;
  if (graph.outputs.includes(value)) return true;
  if (graph.nodes[producer].operator === 'DequantizeLinear') return false;
  const readers = consumers.get(value) ?? [];
  return readers.length > 0 && !(readers.length === 1 && ['QuantizeLinear', 'Relu', 'Clip'].includes(graph.nodes[readers[0]].operator));
}

/**
 * The nodes that compute a value from values on their border: inputs of the model, and values at
 * which the walk ends.
 *
 * @param {GraphView} graph
 * @param {ReturnType<typeof linked>} links
 * @param {string} value
 * @param {(value: string) => boolean} ends
 */
function above(graph, { producers, live }, value, ends) {
  /** @type {Set<number>} */
  const places = new Set();
  /** @type {Set<string>} */
  const border = new Set();
  const open = [value];
  for (let next; (next = open.pop()) !== undefined;) {
    const place = producers.get(next);
    if (place === undefined || places.has(place)) continue;
    places.add(place);
    for (const input of graph.nodes[place].inputs) {
      if (!producers.has(input) || !live.has(input) ? graph.inputs.includes(input) : ends(input)) border.add(input);
      else open.push(input);
    }
  }
  return { places: [...places].sort((a, b) => a - b), border };
}

/**
 * Finds the node. `null` where none on the way of the difference is wrong: rounding adds up.
 *
 * @param {GraphView} graph of the quantized model
 * @param {string} output of the model, which parts
 * @param {Map<string, OutputTensor>} inputs of the model, by name
 * @param {Runtimes} runtimes
 * @param {(round: number, left: number) => void} [told]
 * @returns {Promise<Culprit | null>}
 */
export async function firstWrongNode(graph, output, inputs, runtimes, told = () => {}) {
  const links = linked(graph);
  /** @type {Map<string, Pair>} */
  const seen = new Map();
  let rounds = 0;
  const look = async (/** @type {string[]} */ values) => {
    const fresh = values.filter((value) => !seen.has(value));
    if (fresh.length === 0) return;
    rounds += 1;
    for (const [name, pair] of await runtimes.watch(fresh)) seen.set(name, pair);
  };
  const unlike = (/** @type {string} */ value) => {
    const pair = /** @type {Pair} */ (seen.get(value));
    return decibels(compared(pair.ours, pair.theirs, { centred: true }));
  };
  await look([output]);
  // Between the noise of the output and that of rounding: 45 dB is one step in some of many elements.
  let limit = (Math.max(0, Math.min(unlike(output), 35)) + 45) / 2;
  let bad = output;
  /** Values that led to `bad`, to come back to. @type {string[]} */
  const trail = [];
  /** Values whose difference is one of rounding. @type {Set<string>} */
  const cleared = new Set();
  const up = (/** @type {string} */ value) => {
    trail.push(bad);
    bad = value;
  };
  for (let judged = 0; judged < most;) {
    const known = (/** @type {string} */ value) => seen.has(value) && (unlike(value) >= limit || cleared.has(value));
    const { places, border } = above(graph, links, bad, known);
    const produced = places.flatMap((place) => graph.nodes[place].outputs).filter((value) => value !== bad);
    const candidates = produced.filter((value) => !seen.has(value) && watchable(graph, links, value));
    told(rounds, places.length);
    if (candidates.length > 0) {
      const step = Math.max(1, candidates.length / watched);
      const chosen = [...new Set(Array.from({ length: Math.min(watched, candidates.length) }, (_, at) => candidates[Math.floor((at + 0.5) * step)] ?? candidates[0]))];
      await look(chosen);
      const first = chosen.find((value) => unlike(value) < limit);
      if (first) up(first);
      continue;
    }
    // A value that parted earlier and is above this one comes first.
    const earlier = produced.find((value) => seen.has(value) && !known(value));
    if (earlier) {
      up(earlier);
      continue;
    }
    judged += 1;
    const fed = (/** @type {keyof Pair} */ whose) => [...border].map((name) => seen.get(name)?.[whose] ?? inputs.get(name)).filter((one) => one !== undefined);
    const pair = /** @type {Pair} */ ((await runtimes.alone(fed('ours'), [bad])).get(bad));
    const whole = /** @type {Pair} */ (seen.get(bad));
    const alone = !roundedAlike(pair.ours, pair.theirs);
    const inherited = [...border].filter((name) => seen.has(name) && unlike(name) < same).sort((a, b) => unlike(a) - unlike(b));
    const wrong = alone || (inherited.length > 0
      // Octet, given what the runtime computed, gets what the runtime gets: the difference is older.
      ? !roundedAlike(whole.theirs, /** @type {Pair} */ ((await runtimes.alone(fed('theirs'), [bad])).get(bad)).ours)
      : !roundedAlike(whole.ours, whole.theirs));
    if (wrong) {
      const node = graph.nodes[await within(graph, links, places, fed('ours'), runtimes)];
      const nodes = places.map((place) => graph.nodes[place].name);
      return { node: node.name, operator: node.operator, output: bad, nodes, inputs: fed('ours'), pair: alone ? pair : whole, alone, unlike: decibels(compared(pair.ours, pair.theirs, { centred: true })), rounds };
    }
    // A small difference that this operator makes large, as a logarithm does.
    const next = inherited.find((name) => !cleared.has(name) && unlike(name) < rounding);
    if (next) {
      limit = Math.max(limit, unlike(next) + 3);
      up(next);
      continue;
    }
    cleared.add(bad);
    const back = trail.pop();
    if (back === undefined) return null;
    bad = back;
  }
  // The difference was followed to where it is one of rounding, and each operator on the way is right.
  if (cleared.size > 0) return null;
  throw new Error(`After ${most} operators with other inputs the search ended.`);
}

/**
 * The node that is wrong among those that run fused: the first whose output parts when they run one by
 * one. If none parts then, it is the one that computes.
 *
 * @param {GraphView} graph
 * @param {ReturnType<typeof linked>} links
 * @param {number[]} places
 * @param {OutputTensor[]} inputs
 * @param {Runtimes} runtimes
 */
async function within(graph, { live }, places, inputs, runtimes) {
  const main = places.filter((place) => !forms.has(graph.nodes[place].operator)).at(-1) ?? places[places.length - 1];
  const own = places.filter((place) => graph.nodes[place].outputs.some((output) => live.has(output)));
  if (own.length < 2) return main;
  const outputs = own.flatMap((place) => graph.nodes[place].outputs);
  const pairs = await runtimes.alone(inputs, outputs);
  const apart = own.find((place) => graph.nodes[place].outputs.some((output) => {
    const pair = pairs.get(output);
    return pair && !roundedAlike(pair.ours, pair.theirs);
  }));
  return apart ?? main;
}

/** A value without its elements. @param {OutputTensor} tensor @returns {SeenValue} */
export const form = ({ name, element, shape }) => ({ name, element, shape });
