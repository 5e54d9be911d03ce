// @ts-check
/**
 * The error and the time of the result, measured on the loaded samples, with the layers that cause
 * most of the error and their fixes.
 */

import { get } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { bytes, count, milliseconds, percent, plural, real } from '../../library/format.js';
import { batch } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { sentence } from '../../state/messages.js';
import { comparison, measuring, run, samples, selected, settings, tab, timing } from '../../state/page.js';
import { settingsLocked } from '../../state/surroundings.js';
import { adopt, change } from '../settings/undo.js';
import { measureError, measureTime } from './measure.js';
import { decibels, kindNames, languageNote } from './outputs.js';
import { withAll } from './remedies.js';
import { compareTimes } from './significance.js';
import { unmeasured } from './state.js';

/** @import { BoxMatches, Comparison } from '../../types.js' */
/** @import { Done } from '../../state/page.js' */

const shown = 10;

const busy = () => run.value !== null || measuring.value !== null || samples.value.refs.length === 0;

/** The reason why a measurement failed. @param {Done} done @param {'error' | 'time'} half */
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
      if (now && now.id === done.id) return [...figures(now.found), ...(now.whole ? [] : pending(done))];
      return [
        whyNot(done, 'error'),
        h('p', { class: 'note' }, 'Not measured yet. Compare the result with the float model, layer by layer, on the loaded samples. They calibrated the model, so also check it on other data before you deploy it.'),
        h('div', { class: 'row' }, h('button', { type: 'button', id: 'measure', disabled: busy, onclick: () => void measureError() }, 'Measure the error')),
      ];
    },
  );
}

/** A note in place of the layers. @param {Done} done */
const pending = (done) => [
  whyNot(done, 'error'),
  h('div', { class: 'row', id: 'layers-pending' },
    h('button', { type: 'button', id: 'measure', disabled: busy, onclick: () => void measureError() }, 'Compare the layers'),
    h('span', { class: 'note' }, 'Finds the layers that add most of the error. It follows by itself, unless it was stopped.')),
];

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
      const { ratio, kind } = compareTimes(quantized.total, float.total);
      const row = (/** @type {string} */ name, /** @type {import('../../types.js').Totals} */ one) => [name, milliseconds(one.total.median), `${milliseconds(one.total.p10)} to ${milliseconds(one.total.p90)}`, bytes(one.peakBytes)];
      return [
        h('p', { class: `callout ${kind || 'fair'}` }, kind === '' ? `No significant difference: ${ratio.toFixed(2)} × the float model’s time, and the 10 to 90 % bands overlap.`
          : kind === 'bad' ? `The quantized model is slower here: ${ratio.toFixed(2)} × the float model’s time.` : `The quantized model takes ${ratio.toFixed(2)} × the float model’s time.`),
        table(['Model', 'Median', '10 to 90 %', 'Peak memory of a run'], [row('Float', float), row('Quantized', quantized)], [1, 2, 3]),
        h('p', { class: 'note' }, `${plural(float.runs, 'run')} each after ${plural(float.warmUp, 'warm-up run')}; clock resolution ${real(quantized.resolutionMs)} ms. Measured in this page’s engine; other runtimes have other times.`),
      ];
    },
  );
}

/** @param {BoxMatches} boxes */
const matched = ({ found, confident, extra }) => (confident + extra > 0 ? `${found} of ${confident}` : 'none is confident');

/** @param {Comparison} found */
function figures(found) {
  // Empty columns are left out.
  const boxes = found.outputs.some((output) => output.boxes);
  const classes = found.outputs.some((output) => output.top1 !== null);
  const right = found.outputs.some((output) => output.accuracy !== null);
  const outputs = found.outputs.map((output) => [
    h('code', {}, output.name), kindNames[output.kind], output.parts ? `boxes ${decibels(output.parts.boxes)}, scores ${decibels(output.parts.scores)}` : decibels(output.apart.sqnr), output.apart.cosine.toFixed(4), real(output.apart.max),
    ...(classes ? [output.top1 === null ? '' : percent(output.top1)] : []), ...(right ? [output.accuracy === null ? '' : `${percent(output.accuracy[0])} → ${percent(output.accuracy[1])}`] : []),
    ...(boxes ? [output.boxes ? matched(output.boxes) : ''] : []),
  ]);
  const worst = found.worst.slice(0, shown).flatMap((name) => found.layers.find((layer) => layer.layer === name) ?? []);
  return [
    table(['Output', 'Kind', 'SQNR', 'Cosine', 'Max difference', ...(classes ? ['Top-1 agreement'] : []), ...(right ? ['Accuracy, float → quantized'] : []), ...(boxes ? ['Boxes matched'] : [])], outputs, [2, 3, 4, 5, 6]),
    h('p', { class: 'note' }, `Measured on ${found.samples === 1 ? 'the loaded sample' : `the ${count(found.samples)} loaded samples`}.${boxes ? ' Counts float boxes with a score of 0.25 or more; a match has the same class and overlaps by half or more.' : ''}`),
    ...found.outputs.flatMap(({ name, tokens }) => (tokens ? [h('p', { class: 'note language' }, h('code', {}, name), `: ${languageNote(tokens)}, over ${count(tokens.positions)} positions of these texts.`)] : [])),
    splitView(found),
    found.layersFailed && h('p', { class: 'callout fair', id: 'no-layers' }, `Only the outputs could be compared, not the layers: ${sentence(found.layersFailed)}`),
    ...found.warnings.map(({ message, keepFloat }) => h('p', { class: 'callout fair' }, sentence(message), ' ',
      keepFloat.length > 0 && h('button', { type: 'button', class: 'small', disabled: settingsLocked, onclick: () => keepAll(keepFloat) }, `Keep ${keepFloat.length === 1 ? 'it' : 'them'} float`))),
    worst.length > 0 && h('h3', {}, 'The layers that add most of the error'),
    worst.length > 0 && table(['Layer', 'Operator', 'Share of error', 'Own SQNR', 'Weights only', 'Activations only', 'Clipped', 'Fix'], worst.map(({ layer, operator, harm, added, weightsOnly, activationsOnly, clipped }) => [
      h('button', { type: 'button', class: 'link', onclick: () => look(layer) }, layer), operator, percent(harm), added ? decibels(added.sqnr) : '',
      weightsOnly === null ? '' : decibels(weightsOnly), activationsOnly === null ? '' : decibels(activationsOnly), clipped > 0 ? percent(clipped) : '', mend(layer),
    ]), [2, 3, 4, 5, 6]),
    worst.length > 0 && h('p', { class: 'note' }, 'Weights only, activations only: SQNR of the layer when only its weights or only its activations are quantized.'),
  ];
}

/**
 * The error of weights alone and of activations alone, or the button that measures them.
 *
 * @param {Comparison} found
 */
function splitView({ outputs }) {
  const told = outputs.filter(({ weightsOnly }) => weightsOnly !== null);
  if (told.length === 0) {
    return h('div', { class: 'row' }, h('button', { type: 'button', id: 'split', disabled: busy, onclick: () => void measureError({ split: true }) }, 'Split into weights and activations'),
      h('span', { class: 'note' }, 'Runs two more models: one with only the weights quantized, one with only the activations.'));
  }
  return h('div', { class: 'gap', id: 'split-table' }, table(['Output', 'SQNR', 'Weights only', 'Activations only'], told.map(({ name, apart, weightsOnly, activationsOnly }) => [
    h('code', {}, name), decibels(apart.sqnr), decibels(weightsOnly ?? 200), decibels(activationsOnly ?? 200)]), [1, 2, 3]),
  ...told.slice(0, 1).map(({ weightsOnly, activationsOnly }) => h('p', { class: 'note' }, advice(weightsOnly ?? 200, activationsOnly ?? 200))));
}

/** @param {number} weights @param {number} activations */
const advice = (weights, activations) => (Math.abs(weights - activations) < 3 ? 'Weights and activations contribute about equally.'
  : weights < activations ? 'The weights contribute more: GPTQ rounding or per-channel scales help most.'
    : 'The activations contribute more: another range method, or 16 bits for the worst layers, helps most.');

/** @param {string} layer */
function mend(layer) {
  const path = ['by_node', layer, 'float'];
  if (get(settings.peek().document, path) === true) return h('span', { class: 'note' }, 'kept float');
  return h('button', { type: 'button', class: 'small', disabled: settingsLocked, 'aria-label': `Keep float: ${layer}, and quantize again`, onclick: () => change(path, true, { now: true }) }, 'Keep float');
}

/** @param {string[]} layers */
const keepAll = (layers) => adopt(withAll(settings.peek().document, layers, { float: true }), { now: true });

/** @param {string} layer */
function look(layer) {
  batch(() => {
    selected.value = layer;
    tab.value = 'layers';
  });
}
