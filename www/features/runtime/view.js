// @ts-check
/**
 * The check in the real runtime: what it does, its progress, the matrix of what was tried, each
 * output, and the node that differs with its reproduction.
 */

import { h } from '../../library/dom.js';
import { save } from '../../library/download.js';
import { count, duration, milliseconds, percent, plural } from '../../library/format.js';
import { table } from '../../library/table.js';
import { stopMeasuring } from '../../state/background-task.js';
import { fail, say, sentence } from '../../state/messages.js';
import { measuring, selected, tab } from '../../state/page.js';
import { checkResult, summary } from './check.js';
import { matrixText } from './matrix.js';
import { inWords } from './placement.js';
import { providers } from './providers.js';
import { reproduction } from './reproduction.js';
import { blocked, check, checking, failure, verdict, wanted } from './state.js';
import { distance } from './words.js';

/** @import { Check, Row, Tried } from './state.js' */

export function view() {
  return h('section', { class: 'panel', 'aria-labelledby': 'runtime-title' },
    h('h2', { id: 'runtime-title' }, 'Check in onnxruntime-web'),
    h('p', { class: 'note' }, 'Both models run in ONNX Runtime’s build for browsers, on your samples: do they load, how long do they take, and are the answers those of Octet? The runtime loads from this site when the check begins: 14 MB, or 27 MB for WebGPU and WebNN. Nothing leaves your machine.'),
    chosen(),
    h('div', { class: 'row' },
      // Not `disabled`, so that a screen reader can reach the button and its reason.
      h('button', {
        type: 'button', id: 'runtime-start', class: 'primary', 'aria-disabled': () => (hindered() || checking.value ? 'true' : null), 'aria-describedby': 'runtime-why',
        onclick: () => hindered() || checking.peek() || void checkResult(),
      }, () => (check.value ? 'Check again' : 'Check')),
      h('button', { type: 'button', id: 'runtime-stop', hidden: () => !checking.value, onclick: () => stopMeasuring() && say('The check is stopped.') }, 'Stop'),
      h('span', { id: 'runtime-why', class: 'note' }, hindered)),
    () => checking.value && h('p', { id: 'runtime-stage' }, () => `${measuring.value?.progress.stage ?? 'Stopping'} …`),
    () => failure.value && h('p', { class: 'callout bad', id: 'runtime-failure', role: 'alert' }, failure.value),
    () => check.value && check.value.rows.length > 0 && result(check.value),
  );
}

/** Reason why no check can start; empty if one can. */
const hindered = () => blocked.value || (wanted.value.length === 0 ? 'Choose at least one way to run.' : '');

/** The choice of providers. */
function chosen() {
  return h('fieldset', { class: 'row', id: 'runtime-providers' }, h('legend', { class: 'note' }, 'Run with'),
    providers.map(({ name, title }) => h('label', { class: 'check' }, h('input', {
      type: 'checkbox', name, checked: () => wanted.value.includes(name), disabled: () => checking.value,
      onchange: (/** @type {Event} */ event) => {
        const on = /** @type {HTMLInputElement} */ (event.target).checked;
        wanted.value = providers.map((one) => one.name).filter((one) => (one === name ? on : wanted.peek().includes(one)));
      },
    }), h('span', {}, title))));
}

/** @param {Check} found */
function result(found) {
  const tried = found.rows.filter(({ quantized }) => quantized);
  const bad = tried.some(({ quantized }) => quantized?.error || verdict(quantized) === 'differs');
  const good = tried.length > 0 && tried.every(({ quantized }) => verdict(quantized) === 'alike');
  const stem = found.name.replace(/\.onnx$/i, '');
  return h('div', { class: 'stack', id: 'runtime-result', 'data-whole': String(found.whole) },
    found.whole && h('p', { class: `callout ${bad ? 'bad' : good ? 'good' : 'fair'}`, id: 'runtime-summary' }, summary(found)),
    h('div', { class: 'runtime-matrix gap' },
      table(['Provider', 'Model', 'Loads', 'Time', 'From Octet', 'From float', 'Note'], found.rows.flatMap((row) => lines(row)), [3, 4, 5]),
      h('p', { class: 'note' }, `${plural(found.samples, 'sample')}; times are the median of ${count(found.runs)} runs on the first, both models in turn, with the range from 10 % to 90 %. Distances are signal over noise, of the worst output. “From Octet” compares with the same model in Octet, “From float” with the float model in this runtime.`)),
    outputs(found.rows),
    found.culprit && culprit(found.culprit, found, stem),
    found.whole && h('div', { class: 'row' },
      h('button', { type: 'button', class: 'small', id: 'runtime-save', onclick: () => save(matrixText(found), 'application/json', `${stem}.runtimes.json`) }, 'Save the matrix')),
  );
}

/** The rows of a provider in the matrix. @param {Row} row @returns {import('../../library/dom.js').Leaf[][]} */
function lines(row) {
  const threads = row.threads > 1 ? plural(row.threads, 'thread') : '1 thread';
  if (!row.quantized) return [[row.title, '', 'not tried here', '', '', '', h('span', { class: 'reason' }, row.why)]];
  return (/** @type {const} */ (['float', 'quantized'])).map((kind) => line(row, kind, row[kind], row.provider === 'wasm' ? threads : `${inWords(row[kind]?.placement ?? null, row.title)} ${kind === 'float' ? sentence(row.note) : ''}`));
}

/** @param {Row} row @param {'float' | 'quantized'} kind @param {Tried | null} tried @param {string} note */
function line(row, kind, tried, note) {
  if (!tried || tried.error) return [row.title, kind, h('strong', {}, 'no'), '', '', '', h('span', { class: 'reason' }, tried?.error ?? '')];
  const worst = (/** @type {'octet' | 'float'} */ key) => tried.outputs.reduce((low, one) => Math.min(low, one[key] ?? 200), 200);
  const [median, low, high] = tried.times ?? [0, 0, 0];
  return [
    row.title, kind, `yes, in ${duration(tried.loadTime)}`,
    tried.times ? h('span', {}, milliseconds(median), h('br'), h('span', { class: 'note' }, `${milliseconds(low)} to ${milliseconds(high)}`)) : '',
    distance(worst('octet')), kind === 'quantized' && row.float && !row.float.error ? distance(worst('float')) : '', note,
  ];
}

/** Each output of the quantized model. @param {Row[]} rows */
function outputs(rows) {
  const all = rows.flatMap(({ title, quantized }) => (quantized?.outputs ?? []).map((output) => ({ title, ...output })));
  if (all.length === 0) return '';
  return h('details', { id: 'runtime-outputs', open: all.length <= 4 }, h('summary', {}, `${plural(all.length, 'output')} of the quantized model`),
    table(['Provider', 'Output', 'From Octet', 'From float', 'Same answer as float', 'Verdict'], all.map(({ title, name, octet, float, same, parts, rounded }) => [
      title, h('code', {}, name), distance(octet), float === null ? '' : distance(float), same === null ? '' : percent(same), !parts ? 'as Octet, but for rounding' : rounded ? 'rounding adds up' : 'differs from Octet',
    ]), [2, 3, 4]));
}

/** The node that differs. @param {NonNullable<Check['culprit']>} found @param {Check} whole @param {string} stem */
function culprit({ row, output, found, failure: why, file }, whole, stem) {
  if (!found || !file) {
    return h('p', { class: 'callout fair', id: 'runtime-culprit' }, why
      ? `The output ${output} differs with ${row}, but the node could not be found: ${why}`
      : `The output ${output} differs with ${row}, but no node is wrong: each on the way gives what Octet gives from the same values. Differences of rounding add up.`);
  }
  const version = whole.rows.find(({ title }) => title === row)?.version ?? '';
  const others = found.nodes.length > 1 ? ` It runs together with ${plural(found.nodes.length - 1, 'node')} that quantize and dequantize its values.` : '';
  return h('div', { class: 'callout bad gap', id: 'runtime-culprit', 'data-node': found.node },
    h('h3', {}, 'The first node that differs'),
    h('p', {}, h('code', {}, found.node), ` (${found.operator}) with ${row}: its inputs agree with Octet, its output does not${found.alone ? ` (${distance(found.unlike)} on equal inputs)` : ', though only inside the whole model'}.${others} Found in ${plural(found.rounds, 'round')}. Keep this layer float, or report the reproduction to ONNX Runtime.`),
    h('div', { class: 'row' },
      h('button', { type: 'button', class: 'small', id: 'runtime-reproduction', onclick: async () => {
        try {
          save(await reproduction(found, file, `onnxruntime-web ${version}, ${row}`), 'application/zip', `${stem}.reproduction.zip`);
        } catch (error) {
          fail('The reproduction could not be written', error, 'Save the quantized model instead.');
        }
      } }, 'Save a reproduction'),
      h('button', { type: 'button', class: 'small quiet', id: 'runtime-layer', onclick: () => {
        selected.value = found.node;
        tab.value = 'layers';
      } }, 'Show the layer')));
}
