// @ts-check
/**
 * The check in the real runtime. Both models run there and in Octet on the same tensors; then both
 * are timed in turn. Where an output parts from Octet's, the node is searched.
 */

import { inBackground } from '../../state/background-task.js';
import { say, sentence } from '../../state/messages.js';
import { comparison, done, model, sampleSettings, samples, settings } from '../../state/page.js';
import { start } from '../../state/session.js';
import { firstWrongNode, form } from './bisect.js';
import { added, compared, decibels, middle, nothing } from './measures.js';
import { placementOf } from './placement.js';
import { providers } from './providers.js';
import { Runtime } from './runtime.js';
import { blocked, check, checking, failure, verdict, wanted } from './state.js';
import { inPlainWords } from './words.js';

/** @import { NamedFile, OutputTensor } from '../../types.js' */
/** @import { Octet } from '../../octet.js' */
/** @import { RuntimeSession } from './runtime.js' */
/** @import { Check, Output, Row, Tried } from './state.js' */

/** The number of samples whose answers are compared. */
const most = 8;

/** Measured runs of each model, and runs before them. */
const [runs, warmUp] = [15, 3];

/** Noise between two runtimes that is never more than rounding: decibels. */
const always = 40;

/** @typedef {{ data: NamedFile[], file: Blob }} ModelFiles */
/** @typedef {Record<'float' | 'quantized', ModelFiles>} Models */

/**
 * Tensors of Octet: the inputs of each sample, the outputs of both models, and the noise of
 * quantization of each output.
 *
 * @typedef {object} Known
 * @property {OutputTensor[][]} inputs
 * @property {Record<'float' | 'quantized', Record<string, OutputTensor>[]>} outputs
 * @property {Map<string, number>} noise
 */

/** Checks the result on the samples of the page. */
export async function checkResult() {
  const [open, shown] = [model.peek(), done.peek()];
  if (!open || !shown || blocked.peek()) return;
  const { files, refs } = samples.peek();
  failure.value = '';
  checking.value = true;
  const error = await inBackground('Checking in onnxruntime-web', async (gently, onProgress) => {
    const taken = refs.slice(0, most);
    /** @type {Models} */
    const models = {
      float: { file: open.files[0].blob, data: open.files.slice(1) },
      quantized: { file: shown.result.file, data: [] },
    };
    onProgress({ stage: 'Running both models in Octet', done: 0, of: taken.length });
    const octet = await start();
    /** @type {OutputTensor[][]} */
    const inputs = [];
    for (const { parts } of taken) {
      inputs.push(await open.tensors(files.filter(({ path }) => parts.includes(path)), sampleSettings()));
      gently.throwIfAborted();
    }
    const known = await inOctet(octet, models, inputs, gently);
    /** @type {Check} */
    let now = { id: shown.id, name: shown.result.summary.fileName, samples: taken.length, runs, rows: [], culprit: null, whole: false };
    check.value = now;
    for (const provider of providers) {
      const { why, note } = wanted.peek().includes(provider.name) ? await provider.look() : { why: 'It was not chosen.', note: '' };
      const { row, culprit } = why
        ? { row: emptyRow(provider, why), culprit: null }
        : await tried(provider, note, models, known, octet, gently, (stage) => onProgress({ stage: `${provider.title}: ${stage}` }));
      gently.throwIfAborted();
      now = { ...now, rows: [...now.rows, row], culprit: now.culprit ?? culprit };
      check.value = now;
    }
    check.value = { ...now, whole: true };
    say(summary(now));
  });
  checking.value = false;
  if (error) failure.value = sentence(error instanceof Error ? error.message : String(error));
}

/** The check in one sentence. @param {Check} found */
export function summary({ rows, culprit }) {
  const run = rows.filter(({ quantized }) => quantized);
  const failed = run.filter(({ quantized }) => quantized?.error);
  const apart = run.filter(({ quantized }) => verdict(quantized) === 'differs');
  const rounded = run.filter(({ quantized }) => verdict(quantized) === 'rounded');
  if (run.length === 0) return 'The runtime could not be tried here.';
  if (failed.length > 0) return `The quantized model does not run with ${failed.map(({ title }) => title).join(' and ')}.`;
  if (apart.length > 0) {
    const node = culprit?.found ? ` The first node that differs is ${culprit.found.node} (${culprit.found.operator}).` : '';
    return `The quantized model answers differently with ${apart.map(({ title }) => title).join(' and ')}.${node}`;
  }
  if (rounded.length > 0) return `The quantized model loads. With ${rounded.map(({ title }) => title).join(' and ')} an output differs from Octet, but no node is wrong: rounding adds up. Look at the distances below, and check with samples as in use.`;
  return 'The quantized model loads, and its answers are those of Octet.';
}

/**
 * @param {Octet} octet
 * @param {Models} models
 * @param {OutputTensor[][]} inputs
 * @param {AbortSignal} gently
 * @returns {Promise<Known>}
 */
async function inOctet(octet, models, inputs, gently) {
  /** @type {Known['outputs']} */
  const outputs = { float: [], quantized: [] };
  for (const kind of /** @type {const} */ (['float', 'quantized'])) {
    const session = await octet.createSession(models[kind].file, { data: models[kind].data });
    try {
      for (const one of inputs) {
        outputs[kind].push(await session.run(one));
        gently.throwIfAborted();
      }
    } finally {
      await session.close();
    }
  }
  const names = Object.keys(outputs.quantized[0] ?? {});
  const noise = new Map(names.map((name) => [name, decibels(total(outputs.float, outputs.quantized, name))]));
  return { inputs, outputs, noise };
}

/**
 * The sums of an output over all samples.
 *
 * @param {Record<string, OutputTensor>[]} reference
 * @param {Record<string, OutputTensor>[]} other
 * @param {string} name
 */
function total(reference, other, name) {
  return reference.reduce((sums, one, at) => {
    const [a, b] = [one[name], other[at]?.[name]];
    return a && b ? added(sums, compared(a, b)) : sums;
  }, nothing);
}

/** @param {import('./providers.js').Provider} provider @param {string} why @returns {Row} */
const emptyRow = ({ name, title }, why) => ({ provider: name, title, why, version: '', threads: 1, note: '', float: null, quantized: null });

/**
 * Runs both models with one provider.
 *
 * @param {import('./providers.js').Provider} provider
 * @param {string} note
 * @param {Models} models
 * @param {Known} known
 * @param {Octet} octet
 * @param {AbortSignal} signal
 * @param {(stage: string) => void} told
 * @returns {Promise<{ row: Row, culprit: Check['culprit'] }>}
 */
async function tried(provider, note, models, known, octet, signal, told) {
  told('loading the runtime');
  /** @type {Runtime} */
  let runtime;
  try {
    runtime = await Runtime.start(provider, settings.peek().threads, signal);
  } catch (error) {
    signal.throwIfAborted();
    return { row: emptyRow(provider, `The runtime did not start: ${inPlainWords(error)}`), culprit: null };
  }
  try {
    /** @type {Record<'float' | 'quantized', { tried: Tried, session: RuntimeSession | null, outputs: Record<string, OutputTensor>[] }>} */
    const both = { float: await runAll(runtime, 'float', models, known, signal, told), quantized: await runAll(runtime, 'quantized', models, known, signal, told) };
    const judge = (/** @type {'float' | 'quantized'} */ kind) => judged(kind, both[kind].outputs, both.float.outputs, known);
    const { float, quantized } = both;
    const alive = [float, quantized].filter((one) => one.session);
    told('timing both models');
    const times = await runtime.time(alive.map(({ session }) => /** @type {RuntimeSession} */ (session)), known.inputs[0], { runs, warmUp });
    for (const [at, one] of alive.entries()) one.tried.times = middle(times[at]);
    if (float.session) float.tried.outputs = judge('float');
    if (quantized.session) quantized.tried.outputs = judge('quantized');
    for (const { session } of alive) await session?.close();
    if (provider.name !== 'wasm') {
      told('asking which nodes fell back');
      for (const kind of /** @type {const} */ (['float', 'quantized'])) both[kind].tried.placement = both[kind].session && await placed(runtime, models[kind], signal);
    }
    /** @type {Row} */
    const row = { ...emptyRow(provider, ''), version: runtime.version, threads: runtime.threads, note, float: float.tried, quantized: quantized.tried };
    /** @type {Check['culprit']} */
    let culprit = null;
    for (const apart of quantized.tried.outputs.filter(({ parts }) => parts).sort((a, b) => a.octet - b.octet)) {
      culprit = await searched(apart.name, provider.title, runtime, models.quantized.file, quantized.outputs, known, octet, signal, told);
      if (culprit?.found || culprit?.failure) break;
      apart.rounded = true;
    }
    return { row, culprit };
  } finally {
    runtime.end('The check has ended.');
  }
}

/** The places of a model's nodes, if the runtime says them. @param {Runtime} runtime @param {ModelFiles} model @param {AbortSignal} signal */
async function placed(runtime, { file, data }, signal) {
  try {
    return placementOf(await runtime.log(file, data));
  } catch {
    signal.throwIfAborted();
    return null;
  }
}

/**
 * Loads a model and runs all samples.
 *
 * @param {Runtime} runtime
 * @param {'float' | 'quantized'} kind
 * @param {Models} models
 * @param {Known} known
 * @param {AbortSignal} signal
 * @param {(stage: string) => void} told
 */
async function runAll(runtime, kind, models, known, signal, told) {
  /** @type {Tried} */
  const tried = { error: '', loadTime: 0, times: null, outputs: [], placement: null };
  /** @type {Record<string, OutputTensor>[]} */
  const outputs = [];
  told(`running the ${kind} model`);
  try {
    const session = await runtime.create(models[kind].file, models[kind].data);
    tried.loadTime = session.loadTime;
    for (const one of known.inputs) outputs.push(Object.fromEntries((await session.run(one)).map((tensor) => [tensor.name, tensor])));
    return { tried, session, outputs };
  } catch (error) {
    signal.throwIfAborted();
    return { tried: { ...tried, error: inPlainWords(error) }, session: null, outputs };
  }
}

/**
 * @param {'float' | 'quantized'} kind
 * @param {Record<string, OutputTensor>[]} outputs of the runtime
 * @param {Record<string, OutputTensor>[]} float of the runtime
 * @param {Known} known
 * @returns {Output[]}
 */
function judged(kind, outputs, float, known) {
  const classes = new Set(comparison.peek()?.found.outputs.filter(({ top1 }) => top1 !== null).map(({ name }) => name));
  return Object.keys(outputs[0] ?? {}).map((name) => {
    const octet = decibels(total(known.outputs[kind], outputs, name));
    const toFloat = kind === 'quantized' && float.length > 0 ? total(float, outputs, name) : null;
    // As far as quantization moves the output, or as rounding never does.
    const parts = octet < Math.min(always, known.noise.get(name) ?? always);
    return { name, octet, float: toFloat && decibels(toFloat), same: toFloat && classes.has(name) && toFloat.rows > 0 ? toFloat.same / toFloat.rows : null, parts, rounded: false };
  });
}

/**
 * Searches the node, on the sample whose output differs most.
 *
 * @param {string} output
 * @param {string} row
 * @param {Runtime} runtime
 * @param {Blob} file
 * @param {Record<string, OutputTensor>[]} outputs of the runtime
 * @param {Known} known
 * @param {Octet} octet
 * @param {AbortSignal} signal
 * @param {(stage: string) => void} told
 * @returns {Promise<Check['culprit']>}
 */
async function searched(output, row, runtime, file, outputs, known, octet, signal, told) {
  const apart = known.outputs.quantized.map((one, at) => decibels(compared(one[output], outputs[at][output])));
  const inputs = known.inputs[apart.indexOf(Math.min(...apart))];
  /** Runs a file in both. @param {Blob} what @param {OutputTensor[]} given @param {string[]} names */
  const both = async (what, given, names) => {
    signal.throwIfAborted();
    const ours = await octet.createSession(what);
    const here = await ours.run(given).finally(() => ours.close());
    const theirs = await runtime.create(what);
    const there = await theirs.run(given).finally(() => theirs.close());
    return new Map(names.map((name) => [name, { ours: here[name], theirs: /** @type {OutputTensor} */ (there.find((one) => one.name === name)) }]));
  };
  const cut = (/** @type {OutputTensor[]} */ given, /** @type {string[]} */ values) => octet.excerpt(file, given.map(form), values);
  try {
    told('searching the first node that differs');
    const graph = await octet.graphOf(file);
    const found = await firstWrongNode(graph, output, new Map(inputs.map((one) => [one.name, one])), {
      watch: async (values) => both(await octet.withOutputs(file, values), inputs, values),
      alone: async (given, values) => both(await cut(given, values), given, values),
    }, (rounds, left) => told(`searching the first node that differs: round ${rounds + 1}, ${left} nodes left`));
    return { row, output, found, failure: '', file: found && await cut(found.inputs, [found.output]) };
  } catch (error) {
    signal.throwIfAborted();
    return { row, output, found: null, failure: inPlainWords(error), file: null };
  }
}
