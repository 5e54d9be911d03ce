// @ts-check
/** What quantizing did to the answers, on the samples that are here; the layers to blame with what mends them; and to the time. */

import { change } from '../settings-history.js';
import { h } from '../dom.js';
import { bytes, milliseconds, percent, plural, real } from '../format.js';
import { batch } from '../signals.js';
import { measureError, measureTime } from '../measure.js';
import { sentence } from '../messages.js';
import { decibels, kindNames } from '../outputs.js';
import { comparison, measuring, run, samples, selected, settings, tab, timing, unmeasured } from '../state.js';
import { get } from '../settings-document.js';
import { besideFloat } from '../significance.js';
import { table } from './model.js';

/** @import { Comparison } from '../types.js' */
/** @import { Done } from '../state.js' */

const shown = 10;

/** Edits wait for a run that calibrates, not for what is measured. */
const locked = () => run.value !== null && !run.value.quick;
const busy = () => run.value !== null || measuring.value !== null || samples.value.refs.length === 0;

/** Why a half could not be measured, at its own place. @param {Done} done @param {'error' | 'time'} half */
const whyNot = (done, half) => {
  const now = unmeasured.value;
  return now.id === done.id && now[half] !== '' && h('p', { class: 'callout fair', id: `unmeasured-${half}` }, `${half === 'error' ? 'The error' : 'The time'} could not be measured: ${now[half]}`);
};

/** @param {Done} done */
export function accuracy(done) {
  return h('section', { class: 'gap', 'aria-labelledby': 'accuracy-title' },
    h('h3', { id: 'accuracy-title' }, 'Accuracy'),
    () => {
      const now = comparison.value;
      if (now && now.id === done.id) return figures(now.found);
      return [
        whyNot(done, 'error'),
        h('p', { class: 'note' }, 'Not measured yet. The result can be held against the float model, layer by layer, on the samples that are here; they calibrated it, so check it on other data of your own, too, before you ship it.'),
        h('div', { class: 'row' }, h('button', { type: 'button', id: 'measure', disabled: busy, onclick: () => void measureError() }, 'Measure the error')),
      ];
    },
  );
}

/** @param {Done} done */
export function latency(done) {
  return h('section', { class: 'gap', 'aria-labelledby': 'latency-title' },
    h('h3', { id: 'latency-title' }, 'Time on this machine'),
    () => {
      const now = timing.value;
      if (!now || now.id !== done.id) {
        return [whyNot(done, 'time'), h('div', { class: 'row' }, h('button', { type: 'button', id: 'measure-time', disabled: busy, onclick: () => void measureTime() }, 'Measure the time'),
          h('span', { class: 'note' }, 'Both models run here on the first sample, on one thread, layer by layer.'))];
      }
      const [float, quantized] = [now.float.totals, now.quantized.totals];
      const { ratio, kind } = besideFloat(quantized.total, float.total);
      const row = (/** @type {string} */ name, /** @type {import('../types.js').Totals} */ one) => [name, milliseconds(one.total.median), `${milliseconds(one.total.p10)} to ${milliseconds(one.total.p90)}`, bytes(one.peakBytes)];
      return [
        h('p', { class: `callout ${kind || 'fair'}` }, kind === '' ? `No difference that can be told: ${ratio.toFixed(2)} of the float model’s time, but the bands of the two meet.`
          : kind === 'bad' ? `The quantized model is slower here: ${ratio.toFixed(2)} of the float model’s time.` : `The quantized model takes ${ratio.toFixed(2)} of the float model’s time.`),
        table(['Model', 'Median', '10 to 90 %', 'Most memory of a run'], [row('Float', float), row('Quantized', quantized)], [1, 2, 3]),
        h('p', { class: 'note' }, `${plural(float.runs, 'run')} each after ${plural(float.warmUp, 'run')} to warm up; the clock’s step is ${real(quantized.resolutionMs)} ms. In this page’s engine: another runtime has times of its own.`),
      ];
    },
  );
}

/** @param {Comparison} found */
function figures(found) {
  // Columns that no output has anything for are left out.
  const boxes = found.outputs.some((output) => output.boxes);
  const classes = found.outputs.some((output) => output.top1 !== null);
  const right = found.outputs.some((output) => output.accuracy !== null);
  const outputs = found.outputs.map((output) => [
    h('code', {}, output.name), kindNames[output.kind], output.parts ? `boxes ${decibels(output.parts.boxes)}, scores ${decibels(output.parts.scores)}` : decibels(output.apart.sqnr), output.apart.cosine.toFixed(4), real(output.apart.max),
    ...(classes ? [output.top1 === null ? '' : percent(output.top1)] : []), ...(right ? [output.accuracy === null ? '' : `${percent(output.accuracy[0])} → ${percent(output.accuracy[1])}`] : []),
    ...(boxes ? [output.boxes ? `${output.boxes.found} of ${output.boxes.confident}` : ''] : []),
  ]);
  const worst = found.worst.slice(0, shown).flatMap((name) => found.layers.find((layer) => layer.layer === name) ?? []);
  return [
    table(['Output', 'Kind', 'SQNR', 'Cosine', 'Max difference', ...(classes ? ['Same first answer'] : []), ...(right ? ['Right, float → quantized'] : []), ...(boxes ? ['Boxes found again'] : [])], outputs, [2, 3, 4, 5, 6]),
    h('p', { class: 'note' }, `On ${plural(found.samples, 'sample')}, the ones that are here.${boxes ? ' Boxes count from a score of 0.25 on; found again is one of the same class that overlaps by half or more.' : ''}`),
    splitView(found),
    found.layersFailed && h('p', { class: 'callout fair', id: 'no-layers' }, `The outputs are compared; the layers could not be: ${sentence(found.layersFailed)}`),
    ...found.warnings.map(({ message, keepFloat }) => h('p', { class: 'callout fair' }, sentence(message), ' ',
      keepFloat.length > 0 && h('button', { type: 'button', class: 'small', disabled: locked, onclick: () => keepAll(keepFloat) }, `Keep ${keepFloat.length === 1 ? 'it' : 'them'} float`))),
    worst.length > 0 && h('h3', {}, 'The layers that add most of the error'),
    worst.length > 0 && table(['Layer', 'Operator', 'Of all error', 'SQNR', 'Weights only', 'Activations only', 'Clipped', 'Mend'], worst.map(({ layer, operator, harm, added, weightsOnly, activationsOnly, clipped }) => [
      h('button', { type: 'button', class: 'link', onclick: () => look(layer) }, layer), operator, percent(harm), added ? decibels(added.sqnr) : '',
      weightsOnly === null ? '' : decibels(weightsOnly), activationsOnly === null ? '' : decibels(activationsOnly), clipped > 0 ? percent(clipped) : '', mend(layer),
    ]), [2, 3, 4, 5, 6]),
    worst.length > 0 && h('p', { class: 'note' }, 'Weights only and activations only: the SQNR of the layer with nothing else as integers.'),
  ];
}

/** The whole error in two, where it was asked for: what the weights alone cost, and what the activations alone. @param {Comparison} found */
function splitView({ outputs }) {
  const told = outputs.filter(({ weightsOnly }) => weightsOnly !== null);
  if (told.length === 0) {
    return h('div', { class: 'row' }, h('button', { type: 'button', id: 'split', disabled: busy, onclick: () => void measureError({ split: true }) }, 'Split into weights and activations'),
      h('span', { class: 'note' }, 'Runs two more models: all weights as integers and nothing else, and all activations.'));
  }
  return h('div', { class: 'gap', id: 'split-table' }, table(['Output', 'SQNR', 'Weights only', 'Activations only'], told.map(({ name, apart, weightsOnly, activationsOnly }) => [
    h('code', {}, name), decibels(apart.sqnr), decibels(weightsOnly ?? 200), decibels(activationsOnly ?? 200)]), [1, 2, 3]),
  ...told.slice(0, 1).map(({ weightsOnly, activationsOnly }) => h('p', { class: 'note' }, advice(weightsOnly ?? 200, activationsOnly ?? 200))));
}

/** @param {number} weights @param {number} activations */
const advice = (weights, activations) => (Math.abs(weights - activations) < 3 ? 'Weights and activations cost about as much.'
  : weights < activations ? 'The weights cost more: rounding them together (gptq), or one scale per channel, helps most.'
    : 'The activations cost more: another method for the ranges, or 16 bits for the worst layers, helps most.');

/** @param {string} layer */
function mend(layer) {
  const path = ['by_node', layer, 'float'];
  if (get(settings.peek().document, path) === true) return h('span', { class: 'note' }, 'kept float');
  return h('button', { type: 'button', class: 'small', disabled: locked, 'aria-label': `Keep ${layer} float, and quantize again`, onclick: () => change(path, true, { now: true }) }, 'Keep float');
}

/** @param {string[]} layers */
function keepAll(layers) {
  const { by_node = {} } = settings.peek().document;
  change(['by_node'], { ...by_node, ...Object.fromEntries(layers.map((name) => [name, { ...by_node[name], float: true }])) }, { now: true });
}

/** @param {string} layer */
function look(layer) {
  batch(() => {
    selected.value = layer;
    tab.value = 'layers';
  });
}
