// @ts-check
/**
 * The layers of one run in execution order, float and quantized on the same time scale, with the
 * memory after each layer. The same data is shown as tables.
 */

import { h, svg } from '../../library/dom.js';
import { bytes, count, milliseconds, percent, plural } from '../../library/format.js';
import { table } from '../../library/table.js';
import { done, measuring, run, samples, selected, timing } from '../../state/page.js';
import { layerTimes, usedThreads } from '../result/layer-times.js';
import { measureTime } from '../result/measure.js';

/** @import { Run } from '../../types.js' */
/** @import { LayerTimes } from '../result/layer-times.js' */

/** Size of the pictures in units of their view box. */
const [wide, high, deep] = [1000, 24, 44];

/** Number of rows in a table; the Layers tab has all of them. */
const most = 100;

export function layerLanes() {
  return h('section', { class: 'gap', 'aria-labelledby': 'lanes-title' },
    h('h3', { id: 'lanes-title' }, 'Layers of a run'),
    () => {
      const now = timing.value;
      if (!done.value) return h('p', { class: 'note' }, 'Once there is a quantized model, both can be run and timed layer by layer.');
      if (now?.id !== done.value.id) {
        return h('div', { class: 'row' },
          h('button', { type: 'button', id: 'time-layers', disabled: () => run.value !== null || measuring.value !== null || samples.value.refs.length === 0, onclick: () => void measureTime() }, 'Time the layers'),
          h('span', { class: 'note' }, 'Both models run on the first sample, layer by layer.'));
      }
      return pictures(now.float, now.quantized);
    },
  );
}

/** @param {Run} float @param {Run} quantized */
function pictures(float, quantized) {
  const both = [layerTimes(float), layerTimes(quantized)];
  const span = Math.max(...both.map(({ total }) => total), 1e-6);
  const peak = Math.max(...both.map(({ layers }) => Math.max(...layers.map((layer) => layer.peakBytes), 0)), 1);
  return [
    picture('Float model', both[0], float.totals, span, peak),
    picture('Quantized model', both[1], quantized.totals, span, peak),
    h('p', { class: 'note' }, `Median of ${plural(float.totals.runs, 'run')}, as on the overview, ${usedThreads(float.totals, quantized.totals)}. The width of a bar is the layer’s share of the time; grey layers only convert number formats. Below: live memory after each layer, without file, weights and plan.`),
  ];
}

/** @param {string} name @param {LayerTimes} times @param {Run['totals']} totals @param {number} span milliseconds of the whole width @param {number} peak bytes of the whole height */
function picture(name, { layers, outside, total }, totals, span, peak) {
  const bars = svg('g');
  /** @type {string[]} */
  const live = [];
  let at = 0;
  for (const layer of layers) {
    const [from, to] = [at, at + layer.took].map((ms) => (ms / span) * wide);
    at += layer.took;
    bars.append(svg('rect', { x: from.toFixed(2), y: 0, width: Math.max(to - from, 0.2).toFixed(2), height: high, class: layer.conversion ? 'conversion' : null, 'data-layer': layer.name },
      svg('title', {}, `${layer.name}: ${layer.operator}, ${milliseconds(layer.took)}, ${bytes(layer.liveBytes)} live after it`)));
    const y = (high + 6 + deep - (layer.liveBytes / peak) * deep).toFixed(1);
    live.push(`${from.toFixed(1)},${y}`, `${to.toFixed(1)},${y}`);
  }
  const end = ((at / span) * wide).toFixed(1);
  const base = high + 6 + deep;
  const text = `${name}: ${milliseconds(total)} a run: ${plural(layers.length, 'layer')}, ${milliseconds(outside)} between them; peak live memory ${bytes(totals.peakBytes)}${totals.peakLayer ? ` in ${totals.peakLayer}` : ''}`;
  const drawn = svg('svg', { viewBox: `0 0 ${wide} ${base}`, preserveAspectRatio: 'none', class: 'layer-lane', role: 'img', 'aria-label': `${text}; the table below has them one by one` },
    bars, svg('polygon', { class: 'area', points: `0,${base} ${live.join(' ')} ${end},${base}` }), svg('polyline', { class: 'used', points: live.join(' ') }));
  drawn.addEventListener('click', (event) => {
    const layer = event.target instanceof Element ? event.target.getAttribute('data-layer') : null;
    if (layer) selected.value = layer;
  });
  return h('figure', { class: 'lane' }, h('figcaption', {}, text), drawn, asTable(name, layers));
}

/** The layers as a table. @param {string} name @param {LayerTimes['layers']} layers */
function asTable(name, layers) {
  const shown = layers.slice(0, most);
  return h('details', {}, h('summary', {}, `${name}, layer by layer`),
    table(['#', 'Layer', 'Operator', 'Kernel', 'Time', 'Share', 'Output', 'Live after it'], shown.map((layer, index) => [
      count(index + 1), layer.name, layer.operator, layer.kernel, milliseconds(layer.took), percent(layer.share), bytes(layer.ownBytes), bytes(layer.liveBytes),
    ]), [0, 4, 5, 6, 7]),
    layers.length > most && h('p', { class: 'note' }, `The first ${most} of ${count(layers.length)}; the report has all.`));
}
