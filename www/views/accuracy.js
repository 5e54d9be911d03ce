// @ts-check
/** What quantizing did to the answers, on the samples that are here; the layers to blame with what mends them; and to the time. */

import { change } from '../changes.js';
import { h } from '../dom.js';
import { mib, milliseconds, percent, plural, real } from '../format.js';
import { batch } from '../signals.js';
import { measureError, measureTime } from '../measure.js';
import { sentence } from '../messages.js';
import { comparison, run, samples, selected, settings, tab, timing } from '../state.js';
import { get } from '../document.js';
import { table } from './model.js';

/** @import { Comparison } from '../types.js' */
/** @import { Done } from '../state.js' */

const shown = 10;

/** @param {Done} done */
export function accuracy(done) {
  return h('section', { class: 'gap', 'aria-labelledby': 'accuracy-title' },
    h('h3', { id: 'accuracy-title' }, 'Accuracy'),
    () => {
      const now = comparison.value;
      if (now && now.id === done.id) return figures(now.found);
      return [
        h('p', { class: 'note' }, 'Not measured yet. The result can be held against the float model, layer by layer, on the samples that are here; they calibrated it, so check it on other data of your own, too, before you ship it.'),
        h('div', { class: 'row' }, h('button', { type: 'button', id: 'measure', disabled: () => run.value !== null || samples.value.refs.length === 0, onclick: () => void measureError() }, 'Measure the error')),
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
        return h('div', { class: 'row' }, h('button', { type: 'button', id: 'measure-time', disabled: () => run.value !== null || samples.value.refs.length === 0, onclick: () => void measureTime() }, 'Measure the time'),
          h('span', { class: 'note' }, 'Both models run here on the first sample, on one thread, layer by layer.'));
      }
      const [float, quantized] = [now.float.totals, now.quantized.totals];
      const ratio = quantized.total.median / float.total.median;
      const row = (/** @type {string} */ name, /** @type {import('../types.js').Totals} */ one) => [name, milliseconds(one.total.median), `${milliseconds(one.total.p10)} to ${milliseconds(one.total.p90)}`, mib(one.peakBytes)];
      return [
        h('p', { class: ratio > 1 ? 'callout bad' : 'callout good' }, ratio > 1 ? `The quantized model is slower here: ${ratio.toFixed(2)} of the float model’s time.` : `The quantized model takes ${ratio.toFixed(2)} of the float model’s time.`),
        table(['Model', 'Median', '10 to 90 %', 'Most memory of a run'], [row('Float', float), row('Quantized', quantized)], [1, 2, 3]),
        h('p', { class: 'note' }, `${plural(float.runs, 'run')} each after ${plural(float.warmUp, 'run')} to warm up; the clock’s step is ${real(quantized.resolutionMs)} ms. In this page’s engine: another runtime has times of its own.`),
      ];
    },
  );
}

/** @param {number} sqnr */
const decibels = (sqnr) => (sqnr >= 200 ? 'equal' : `${sqnr.toFixed(1)} dB`);

/** @param {Comparison} found */
function figures(found) {
  const outputs = found.outputs.map(({ name, apart, top1, accuracy: right }) => [
    h('code', {}, name), decibels(apart.sqnr), apart.cosine.toFixed(4), real(apart.max), top1 === null ? '' : percent(top1), right === null ? '' : `${percent(right[0])} → ${percent(right[1])}`,
  ]);
  const worst = found.worst.slice(0, shown).flatMap((name) => found.layers.find((layer) => layer.layer === name) ?? []);
  return [
    table(['Output', 'SQNR', 'Cosine', 'Max difference', 'Same first answer', 'Right, float → quantized'], outputs, [1, 2, 3, 4, 5]),
    h('p', { class: 'note' }, `On ${plural(found.samples, 'sample')}, the ones that are here.`),
    ...found.warnings.map(({ message, keepFloat }) => h('p', { class: 'callout fair' }, sentence(message), ' ',
      keepFloat.length > 0 && h('button', { type: 'button', class: 'small', disabled: () => run.value !== null, onclick: () => keepAll(keepFloat) }, `Keep ${keepFloat.length === 1 ? 'it' : 'them'} float`))),
    worst.length > 0 && h('h3', {}, 'The layers that add most of the error'),
    worst.length > 0 && table(['Layer', 'Operator', 'Of all error', 'SQNR', 'Clipped', 'Mend'], worst.map(({ layer, operator, harm, added, clipped }) => [
      h('button', { type: 'button', class: 'link', onclick: () => look(layer) }, layer), operator, percent(harm), added ? decibels(added.sqnr) : '', clipped > 0 ? percent(clipped) : '', mend(layer),
    ]), [2, 3, 4]),
  ];
}

/** @param {string} layer */
function mend(layer) {
  const path = ['by_node', layer, 'float'];
  if (get(settings.peek().document, path) === true) return h('span', { class: 'note' }, 'kept float');
  return h('button', { type: 'button', class: 'small', disabled: () => run.value !== null, 'aria-label': `Keep ${layer} float, and quantize again`, onclick: () => change(path, true, { now: true }) }, 'Keep float');
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
