// @ts-check
/**
 * Layers whose constants are learned: the loss along the steps while it runs, then each layer's
 * error before and after, and the verdict on the whole model.
 */

import { h, svg } from '../../library/dom.js';
import { count, plural, real } from '../../library/format.js';
import { table } from '../../library/table.js';
import { run } from '../../state/page.js';

/** @import { Calibration } from '../../api.js' */
/** @import { LayerReport } from '../../types.js' */

const [wide, high] = [600, 110];
/** The greatest relative loss that is drawn. */
const most = 1.5;
/** Earlier layers that are drawn behind the last one. */
const behind = 12;
/** The number of rows while the table grows. */
const rows = 8;

/** Words for the proposal that was taken. @type {Record<string, string>} */
const proposals = { given: 'none, no gain', 'not possible': 'none, not possible here', 'closed form': 'closed form', learned: 'learned' };

/** The part of the progress that is about layers; empty while there are none. */
export function learnedSoFar() {
  return h('div', { class: 'gap', id: 'learned-so-far' }, () => {
    const layers = run.value?.learned ?? [];
    const last = layers.at(-1);
    if (!last) return null;
    const resumed = run.value?.progress.resumed ?? 0;
    return [resumed > 0 && h('p', { class: 'note' }, `${kept(resumed)} This run continues after them, with the same result.`), lossCurve(layers, last), layersTable(layers.slice(-rows).reverse())];
  });
}

/** @param {number} resumed layers of an earlier run */
const kept = (resumed) => `${plural(resumed, 'layer')} had learned in an earlier run with the same model, settings and samples.`;

/** Loss relative to its start. @param {LayerReport} layer */
const relative = ({ curve }) => curve.map((loss) => loss / (curve[0] || 1));

/** Decibels that a layer gained. @param {LayerReport} layer */
const gained = ({ before, after }) => (before > 0 && after > 0 ? 10 * Math.log10(before / after) : 0);

/** @param {LayerReport[]} layers @param {LayerReport} last */
function lossCurve(layers, last) {
  const drawnLayers = [...layers.slice(-1 - behind, -1), last].filter(({ curve }) => curve.length > 1);
  const text = last.curve.length > 1
    ? `${last.layer}: after its steps the loss is ${real(relative(last).at(-1) ?? 1)} of its start`
    : `${last.layer}: solved in closed form, without steps`;
  const picture = svg('svg', { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: 'none', class: 'curve losses', role: 'img', 'aria-label': text });
  const y = (/** @type {number} */ loss) => high - 4 - (Math.min(loss, most) / most) * (high - 8);
  picture.append(svg('line', { x1: 0, x2: wide, y1: y(1), y2: y(1) }));
  for (const layer of drawnLayers) {
    const losses = relative(layer);
    const points = losses.map((loss, index) => `${((index / (losses.length - 1)) * wide).toFixed(1)},${y(loss).toFixed(1)}`).join(' ');
    picture.append(svg('polyline', { points, class: layer === last ? 'used' : 'held' }));
  }
  return h('figure', { class: 'chart' }, picture, h('figcaption', {},
    h('span', { class: 'key used' }, 'loss of the last layer, along its steps'),
    layers.length > 1 && h('span', { class: 'key held' }, 'layers before'),
    h('span', {}, `${text}. The grey line is the start.`)));
}

/** @param {LayerReport[]} layers */
const layersTable = (layers) => table(['Layer', 'Operator', 'Taken', 'Error before', 'Error after', 'Gain'], layers.map((layer) => [
  h('code', {}, layer.layer), layer.operator, proposals[layer.taken] ?? layer.taken, real(layer.before), real(layer.after), `${gained(layer).toFixed(1)} dB`,
]), [3, 4, 5]);

/** True if the part has learned constants. @param {LayerReport} part */
const isChanged = ({ taken }) => taken !== 'given' && taken !== 'not possible';

/** Counts the parts of each kind that changed: "2 of 7 layers and 1 of 2 blocks changed". @param {LayerReport[]} layers */
function changed(layers) {
  const kinds = Object.entries({ layer: 'layer', block: 'block', model: 'distillation' });
  const told = kinds.flatMap(([kind, word]) => {
    const own = layers.filter(({ part }) => part === kind);
    const gaining = own.filter(isChanged).length;
    return own.length ? [`${count(gaining)} of ${plural(own.length, word)}`] : [];
  });
  return `${told.join(' and ')} changed`;
}

/**
 * Title, colour and words of the verdict on what a run learned.
 *
 * @param {NonNullable<Calibration['tuned']>} summary
 */
function verdict({ layers, judgement }) {
  const parts = changed(layers);
  if (!layers.some(isChanged)) return ['Nothing was learned', 'fair', `${parts}, because none gained on positions that did not teach. More samples may help.`];
  if (!judgement) return ['Learned, not judged', 'fair', `${parts}. With four samples or more, some of them would judge the whole model.`];
  const [before, after] = [judgement.before, judgement.after].map((sqnr) => sqnr.toFixed(1));
  return judgement.taken
    ? ['The learned weights are used', 'good', `On samples that did not teach, the outputs have ${after} dB in place of ${before}. ${parts}.`]
    : ['The learned weights are dropped', 'fair', `On samples that did not teach, the outputs have ${after} dB with them and ${before} without. More samples may help.`];
}

/** The verdict on what a run learned, and its layers. @param {NonNullable<Calibration['tuned']>} summary */
export function learned(summary) {
  const { layers, samples, resumed } = summary;
  const [title, kind, words] = verdict(summary);
  return h('section', { class: 'gap', id: 'learned', 'aria-labelledby': 'learned-title' },
    h('div', { class: `callout ${kind}` }, h('h3', { id: 'learned-title' }, title), h('p', {}, words)),
    resumed > 0 && h('p', { class: 'note', id: 'resumed' }, `${kept(resumed)} This run continued after them.`),
    h('details', {}, h('summary', {}, `What was learned from ${plural(samples, 'sample')}`),
      layersTable(layers),
      h('p', { class: 'note' }, 'Mean squared errors of the layers’ outputs, at positions that did not teach.')));
}
