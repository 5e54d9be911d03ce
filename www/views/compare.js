// @ts-check
/** Two results side by side: what differs in settings, in size, in the nodes and in the tensors. */

import { canonical, inWords } from '../document.js';
import { h } from '../dom.js';
import { bytes, count, duration, plural, real } from '../format.js';
import { batch, signal } from '../signals.js';
import { selected, tab, tried } from '../state.js';
import { write } from '../yaml.js';
import { table } from './model.js';

/** @import { Tried } from '../state.js' */
/** @import { QuantizedTensor } from '../types.js' */

/** The two that are compared; 0 for the newest and the one before it. */
const sides = signal({ left: 0, right: 0 });
const shown = 200;

export function compareView() {
  return h('section', { class: 'panel', 'aria-labelledby': 'compare-title' },
    h('h2', { id: 'compare-title' }, 'Compare'),
    () => {
      const all = tried.value;
      if (all.length < 2) return h('p', { class: 'note' }, 'Two results are compared here. Quantize, change something (a method, a layer kept float), and quantize again.');
      const right = all.find((one) => one.id === sides.value.right) ?? all[all.length - 1];
      const left = all.find((one) => one.id === sides.value.left) ?? all[Math.max(0, all.indexOf(right) - 1)];
      return [
        h('div', { class: 'row' }, side('left', 'First', left), side('right', 'Second', right)),
        left === right ? h('p', { class: 'note' }, 'Choose two different results.') : differences(left, right),
      ];
    },
  );
}

/** @param {'left' | 'right'} key @param {string} label @param {Tried} now */
function side(key, label, now) {
  return h('label', { class: 'field grow' }, h('span', {}, label),
    h('select', { id: `compare-${key}`, value: String(now.id), onchange: (/** @type {Event} */ event) => (sides.value = { ...sides.peek(), [key]: Number(/** @type {HTMLSelectElement} */ (event.target).value) }) },
      ...tried.value.map((one, index) => h('option', { value: String(one.id) }, `${index + 1}: ${inWords(one.document)}`))));
}

/** @param {Tried} left @param {Tried} right */
function differences(left, right) {
  const integers = (/** @type {Tried} */ one) => one.summary.nodes.filter((node) => node.quantized).length;
  const metrics = [...new Set([left, right].flatMap((one) => Object.keys(one.metrics)))];
  const before = new Map(left.summary.nodes.map((node) => [node.node, node]));
  const nodes = right.summary.nodes.filter((node) => before.has(node.node) && before.get(node.node)?.quantized !== node.quantized);
  const old = new Map(left.summary.tensors.map((tensor) => [tensor.name, tensor]));
  const fresh = new Map(right.summary.tensors.map((tensor) => [tensor.name, tensor]));
  const names = [...new Set([...old.keys(), ...fresh.keys()])].filter((name) => told(old.get(name)) !== told(fresh.get(name)));
  const look = (/** @type {string} */ name) => h('button', { type: 'button', class: 'link', onclick: () => batch(() => {
    selected.value = name;
    tab.value = 'layers';
  }) }, name);
  return h('div', { class: 'stack' },
    table(['What', 'First', 'Second', 'Change'], [
      ['Size', bytes(left.summary.bytesAfter), bytes(right.summary.bytesAfter), signed(right.summary.bytesAfter - left.summary.bytesAfter, bytes)],
      ['Operators on integers', count(integers(left)), count(integers(right)), signed(integers(right) - integers(left), count)],
      ['Quantized tensors', count(old.size), count(fresh.size), signed(fresh.size - old.size, count)],
      ['Guarded', count(left.summary.notes.length), count(right.summary.notes.length), signed(right.summary.notes.length - left.summary.notes.length, count)],
      ['Time', duration(left.took), duration(right.took), ''],
      ...metrics.map((key) => [key, ...[left, right].map((one) => (Number.isFinite(one.metrics[key]) ? real(one.metrics[key]) : '')), Number.isFinite(left.metrics[key]) && Number.isFinite(right.metrics[key]) ? signed(right.metrics[key] - left.metrics[key], real) : '']),
    ], [1, 2, 3]),
    canonical(left.document) !== canonical(right.document) && h('div', { class: 'pair' }, settingsOf('First', left), settingsOf('Second', right)),
    h('h3', {}, nodes.length === 0 ? 'The same operators work on integers' : `${plural(nodes.length, 'operator')} changed`),
    nodes.length > 0 && table(['Node', 'Operator', 'First', 'Second', 'Why float'], nodes.slice(0, shown).map((node) => {
      const was = before.get(node.node);
      return [look(node.node), node.operator, was?.quantized ? 'integers' : 'float', node.quantized ? 'integers' : 'float', node.reason ?? was?.reason ?? ''];
    })),
    h('h3', {}, names.length === 0 ? 'All tensors have the same scales' : `${plural(names.length, 'tensor')} represented otherwise`),
    names.length > 0 && table(['Tensor', 'First', 'Second'], names.slice(0, shown).map((name) => [h('code', {}, name), told(old.get(name)), told(fresh.get(name))])),
    names.length > shown && h('p', { class: 'note' }, `The first ${shown} of ${count(names.length)}.`),
  );
}

/** @param {string} title @param {Tried} one */
function settingsOf(title, one) {
  return h('div', {}, h('h3', {}, `${title}: settings`), h('pre', { class: 'settings-text', tabindex: 0 }, write(one.document) || 'nothing said\n'));
}

/** @param {QuantizedTensor | undefined} tensor */
const told = (tensor) => (tensor ? `${tensor.element.toLowerCase()}, ${real(tensor.min)} to ${real(tensor.max)}${tensor.scales > 1 ? `, ${count(tensor.scales)} scales` : ''}` : 'float');

/** @param {number} by @param {(by: number) => string} text */
const signed = (by, text) => (by === 0 ? 'same' : `${by > 0 ? '+' : '−'}${text(Math.abs(by))}`);
