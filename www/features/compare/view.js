// @ts-check
/**
 * Two results side by side, or a result and the float model: differences in size, error, time and
 * settings, then layer by layer.
 */

import { canonical, inWords } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { menu } from '../../library/fields.js';
import { bytes, count, duration, plural, real } from '../../library/format.js';
import { computed } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { write } from '../../library/yaml.js';
import { runHistory, selected } from '../../state/page.js';
import { metricNames } from '../layers/run-history.js';
import { runsDiffer } from '../result/significance.js';
import { worksOn } from '../settings/scheme-words.js';
import { comparable, linkedLayers } from './linked.js';
import { candidates, float, pair, sideIds } from './pair.js';

/** @import { HistoryEntry } from '../../state/page.js' */
/** @import { QuantizedTensor } from '../../types.js' */

const shown = 200;

export function view() {
  const there = computed(() => pair.value !== null);
  const two = computed(comparable);
  return h('section', { class: 'panel', 'aria-labelledby': 'compare-title' },
    h('h2', { id: 'compare-title' }, 'Compare'),
    () => !there.value && h('p', { class: 'note' }, 'A result is compared here with the float model, or with another result. Quantize first; then change something (a method, a layer kept float), and quantize again.'),
    () => there.value && h('div', { class: 'row' }, side('left', 'First'), side('right', 'Second')),
    () => there.value && !two.value && h('p', { class: 'note' }, 'Choose two different results.'),
    () => two.value && pair.value && mainFigures(pair.value.left, pair.value.right),
    () => two.value && linkedLayers({ left: () => named(pair.value?.left), right: () => named(pair.value?.right) }),
    () => two.value && pair.value && differences(pair.value.left, pair.value.right),
  );
}

/** The name of a side in headings. @param {HistoryEntry | undefined} one */
function named(one) {
  if (!one) return '';
  return one.id === float ? 'Float model' : `Result ${runHistory.value.findIndex(({ id }) => id === one.id) + 1}`;
}

/** @param {'left' | 'right'} key @param {string} label */
function side(key, label) {
  return h('label', { class: 'field grow' }, h('span', {}, label),
    menu({ id: `compare-${key}` }, () => String(pair.value?.[key].id ?? ''),
      () => candidates.value.map((one) => [String(one.id), one.id === float ? named(one) : `${named(one)}: ${inWords(one.document)}`]),
      (id) => (sideIds.value = { ...sideIds.peek(), [key]: Number(id) })));
}

/** The main figures of both sides. @param {HistoryEntry} left @param {HistoryEntry} right */
function mainFigures(left, right) {
  const integers = (/** @type {HistoryEntry} */ one) => one.summary.nodes.filter((node) => node.quantized).length;
  const metrics = Object.keys(metricNames).filter((key) => key in left.metrics || key in right.metrics);
  const took = (/** @type {HistoryEntry} */ one) => (one.id === float ? '' : duration(one.took));
  return table(['Figure', named(left), named(right), 'Change'], [
    ['Size', bytes(left.summary.bytesAfter), bytes(right.summary.bytesAfter), signed(right.summary.bytesAfter - left.summary.bytesAfter, bytes)],
    [title(left, right), count(integers(left)), count(integers(right)), signed(integers(right) - integers(left), count)],
    ['Quantized tensors', count(left.summary.tensors.length), count(right.summary.tensors.length), signed(right.summary.tensors.length - left.summary.tensors.length, count)],
    ['Tensors in mixed precision', count(left.summary.guarded ?? 0), count(right.summary.guarded ?? 0), signed((right.summary.guarded ?? 0) - (left.summary.guarded ?? 0), count)],
    ['Quantization time', took(left), took(right), ''],
    ...metrics.map((key) => [metricNames[key], ...[left, right].map((one) => (Number.isFinite(one.metrics[key]) ? real(one.metrics[key]) : '')), metricChange(key, left.metrics, right.metrics)]),
  ], [1, 2, 3]);
}

/** @param {string} key @param {Record<string, number>} left @param {Record<string, number>} right */
function metricChange(key, left, right) {
  if (!Number.isFinite(left[key]) || !Number.isFinite(right[key])) return '';
  return key === 'ms' && !runsDiffer(left, right) ? 'not significant' : signed(right[key] - left[key], real);
}

/**
 * The title names the arithmetic if both sides use the same.
 *
 * @param {HistoryEntry} left
 * @param {HistoryEntry} right
 */
function title(left, right) {
  const [one, other] = [left, right].map(({ id, document }) => (id === float ? '' : worksOn(document).on));
  return `Operators ${one === other || other === '' ? one : one === '' ? other : 'quantized'}`;
}

/** @param {HistoryEntry} left @param {HistoryEntry} right */
function differences(left, right) {
  const before = new Map(left.summary.nodes.map((node) => [node.node, node]));
  const nodes = right.summary.nodes.filter((node) => before.has(node.node) && before.get(node.node)?.quantized !== node.quantized);
  const old = new Map(left.summary.tensors.map((tensor) => [tensor.name, tensor]));
  const fresh = new Map(right.summary.tensors.map((tensor) => [tensor.name, tensor]));
  const names = [...new Set([...old.keys(), ...fresh.keys()])].filter((name) => describe(old.get(name)) !== describe(fresh.get(name)));
  const look = (/** @type {string} */ name) => h('button', { type: 'button', class: 'link', onclick: () => (selected.value = name) }, name);
  const between = left.id !== float && right.id !== float;
  return h('div', { class: 'stack' },
    between && canonical(left.document) !== canonical(right.document) && h('div', { class: 'pair' }, settingsOf('First', left), settingsOf('Second', right)),
    between && h('h3', {}, nodes.length === 0 ? 'The same operators are quantized' : `${plural(nodes.length, 'operator')} changed`),
    between && nodes.length > 0 && table(['Node', 'Operator', 'First', 'Second', 'Why float'], nodes.slice(0, shown).map((node) => {
      const was = before.get(node.node);
      return [look(node.node), node.operator, was?.quantized ? 'integers' : 'float', node.quantized ? 'integers' : 'float', node.reason ?? was?.reason ?? ''];
    })),
    between && h('h3', {}, names.length === 0 ? 'All tensors have the same scales' : `${plural(names.length, 'tensor')} with other types or scales`),
    between && names.length > 0 && table(['Tensor', 'First', 'Second'], names.slice(0, shown).map((name) => [h('code', {}, name), describe(old.get(name)), describe(fresh.get(name))])),
    between && names.length > shown && h('p', { class: 'note' }, `The first ${shown} of ${count(names.length)}.`),
  );
}

/** @param {string} title @param {HistoryEntry} one */
function settingsOf(title, one) {
  return h('div', {}, h('h3', {}, `${title}: settings`), h('pre', { class: 'settings-text', tabindex: 0 }, write(one.document) || 'all defaults\n'));
}

/** @param {QuantizedTensor | undefined} tensor */
const describe = (tensor) => (tensor ? `${tensor.element.toLowerCase()}, ${real(tensor.min)} to ${real(tensor.max)}${tensor.scales > 1 ? `, ${count(tensor.scales)} scales` : ''}` : 'float');

/** @param {number} by @param {(by: number) => string} text */
const signed = (by, text) => (by === 0 ? 'same' : `${by > 0 ? '+' : '−'}${text(Math.abs(by))}`);
