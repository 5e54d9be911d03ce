// @ts-check
/** Runtimes and providers in which the result was tried here, and those in which it was not. */

import { h } from '../../library/dom.js';
import { duration, milliseconds } from '../../library/format.js';
import { table } from '../../library/table.js';
import { comparison, tab, timing } from '../../state/page.js';
import { providers } from './providers.js';
import { check, verdict } from './state.js';
import { distance } from './words.js';

/** @import { Leaf } from '../../library/dom.js' */
/** @import { Check, Row } from './state.js' */

const notTried = 'not tried here';

export function triedHere() {
  return h('section', { class: 'panel', 'aria-labelledby': 'tried-title', id: 'tried' },
    h('h2', { id: 'tried-title' }, 'Where it was tried'),
    h('p', { class: 'note' }, 'What this result did on this machine, with your samples. Other machines may differ.'),
    () => table(['Runtime', 'Runs with', 'Loads', 'Answers', 'Time'], [octet(), ...rows(check.value), native()], [4]),
    h('div', { class: 'row' }, h('button', { type: 'button', class: 'small', id: 'to-runtime', onclick: () => (tab.value = 'runtime') }, () => (check.value ? 'See the check' : 'Try it in onnxruntime-web'))));
}

/** Octet itself, which runs the result when it measures the error. @returns {Leaf[]} */
function octet() {
  const [ran, times] = [comparison.value, timing.value];
  const time = times ? milliseconds(times.quantized.totals.total.median) : '';
  return ['Octet', 'this page', ran || times ? 'yes' : notTried, ran ? 'compared with float: see Overview' : '', time];
}

/** @param {Check | null} found @returns {Leaf[][]} */
function rows(found) {
  return providers.map(({ name, title }) => {
    const row = found?.rows.find(({ provider }) => provider === name);
    const runtime = row?.version ? `onnxruntime-web ${row.version}` : 'onnxruntime-web';
    return row?.quantized ? [runtime, title, ...tried(row, found)] : [runtime, title, notTried, h('span', { class: 'note reason' }, row?.why ?? ''), ''];
  });
}

/** @param {Row} row @param {Check | null} found @returns {Leaf[]} */
function tried({ title, quantized }, found) {
  if (!quantized || quantized.error) return [h('strong', {}, 'no'), h('span', { class: 'note reason' }, quantized?.error ?? ''), ''];
  const worst = quantized.outputs.reduce((low, { octet: one }) => Math.min(low, one), 200);
  const node = found?.culprit?.row === title ? found.culprit.found?.node : '';
  const answers = {
    differs: () => h('span', {}, h('strong', {}, `differ from Octet (${distance(worst)})`), node ? ` from ${node} on` : ''),
    rounded: () => `rounding adds up (${distance(worst)})`,
    alike: () => `as Octet (${distance(worst)})`,
  }[verdict(quantized)]();
  return [`yes, in ${duration(quantized.loadTime)}`, answers, quantized.times ? milliseconds(quantized.times[0]) : ''];
}

/** ONNX Runtime as a program, which a page can't run. @returns {Leaf[]} */
const native = () => ['ONNX Runtime', 'CPU, CUDA, TensorRT, QNN …', notTried, h('span', { class: 'note reason' }, 'A page can’t run it. The code below does.'), ''];
