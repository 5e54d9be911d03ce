// @ts-check
/** The settings with explanations. Built once; only values change, so focus stays in place. */

import { h } from '../dom.js';
import { abilities, capabilities, run, settings } from '../state.js';
import { methods } from '../methods.js';
import { set } from '../studio.js';
import { adopt, change } from '../settings-history.js';
import { canonical, defaultMethod, get } from '../settings-document.js';
import { documentEditor } from './settings-document.js';

/** @import { Path } from '../settings-document.js' */

/** True during a calibration. A quick run ends in a moment, and the next one follows it. */
const busy = () => run.value !== null && !run.value.quick;

/** @param {Event} event */
const chosen = (event) => /** @type {HTMLSelectElement} */ (event.target).value;

/** @type {[string, string, string][]} */
const schemes = [
  ['static', 'Static, from samples', 'Weights and activations become integers, with scales calibrated on your samples. Gives the smallest and fastest models.'],
  ['dynamic', 'Dynamic, at run time', 'Activations are quantized at each inference. Needs no samples; for transformers and LSTMs on CPUs.'],
  ['weights', 'Weights only, 8 bits', 'Needs no samples. A quarter of the size, computed in float.'],
  ['blocks', 'Block-wise weights', '2 to 8 bits, for the large matrices of language models. Needs no samples, except with gptq.'],
  ['float16', 'Half precision', 'Needs no samples. Half the size, no integers.'],
];
/** @type {[string, string][]} */
const formats = [
  ['qdq', 'QDQ (every runtime)'],
  ['qoperator', 'Integer operators (ONNX Runtime)'],
  ['simulated', 'Simulated: same results, float weights'],
];

/**
 * Presets of the whole document.
 *
 * @type {[string, string, import('../types.js').QuantizeSettings][]}
 */
const careful = [
  ['balanced', 'Balanced', {}],
  ['fast', 'Fast: no mixed precision', { guard: false }],
  ['onnxruntime', 'As ONNX Runtime (minmax)', { method: 'minmax' }],
];

/** The value in the document, or its default. @param {Path} path @param {unknown} otherwise */
const said = (path, otherwise) => get(settings.value.document, path) ?? otherwise;
/**
 * Sets a value; the default removes the key.
 *
 * @param {Path} path
 * @param {unknown} value
 * @param {unknown} otherwise
 */
const say = (path, value, otherwise) => change(path, value === otherwise ? undefined : value);
const scheme = () => /** @type {string} */ (said(['scheme'], 'static'));

export function settingsPanel() {
  const isStatic = () => scheme() === 'static';
  return h('section', { class: 'panel', 'aria-labelledby': 'settings-title' },
    h('h2', { id: 'settings-title' }, 'Settings'),
    h('fieldset', { disabled: busy },
      h('legend', { class: 'unseen' }, 'Quantization'),
      choice('Preset', 'whole', () => careful.find(([, , document]) => canonical(document) === canonical(settings.value.document))?.[0] ?? '',
        [['', 'Custom'], ...careful.map(([key, text]) => [key, text])], (key) => {
          const found = careful.find(([name]) => name === key);
          if (found) adopt(found[2]);
        }),
      choice('Scheme', 'scheme', scheme, schemes.map(([key, text]) => [key, text]), (value) => say(['scheme'], value, 'static')),
      h('p', { class: 'note' }, () => schemes.find(([key]) => key === scheme())?.[2] ?? ''),
      h('div', { class: 'gap', hidden: () => !isStatic() },
        choice('Range method', 'method', () => String(said(['method'], defaultMethod)), () => {
          const now = String(said(['method'], defaultMethod));
          return methods.some(([key]) => key === now) ? methods : [...methods, [now, now]];
        }, (method) => say(['method'], method, defaultMethod)),
        h('p', { class: 'note', id: 'method-cost', hidden: () => said(['method'], defaultMethod) !== 'auto' },
          'auto gives up to twelve early activations 16 bits. This makes a run about 20 % slower, or more where they are large. minmax or “fine_first: 0” avoids it.'),
        choice('Activations', 'activations', () => String(said(['activations', 'type'], 'u8')),
          [['u8', 'uint8 (widest support)'], ['i8', 'int8'], ['u16', 'uint16'], ['i16', 'int16']], (value) => say(['activations', 'type'], value, 'u8')),
        choice('Weight rounding', 'rounding', () => String(said(['rounding'], 'nearest')), [['nearest', 'to nearest'], ['gptq', 'GPTQ (slower, more accurate)']], (value) => say(['rounding'], value, 'nearest')),
        choice('Format', 'format', () => String(said(['format'], 'qdq')), formats, (value) => say(['format'], value, 'qdq')),
        tick('per-channel', 'Per-channel weight scales', 'More accurate; a few old runtimes need one scale per tensor.', ['weights', 'per_channel'], true),
        tick('equalize', 'Equalize channels', 'Rescales neighbouring layers so that their channels have similar ranges. Takes one more pass over the samples.', ['equalize'], false),
        tick('guard', 'Mixed precision', 'Tensors for which 8 bits are too coarse get 16 bits or stay float; the result lists them.', ['guard'], true),
      ),
      h('div', { class: 'gap', hidden: () => scheme() !== 'blocks' },
        choice('Bits', 'bits', () => String(said(['blocks', 'bits'], 4)), [['2', '2'], ['4', '4'], ['8', '8']], (value) => say(['blocks', 'bits'], Number(value), 4)),
        choice('Method', 'block-method', () => String(said(['blocks', 'method'], 'rtn')), [['rtn', 'rtn'], ['search', 'search'], ['gptq', 'gptq (with samples)']], (value) => say(['blocks', 'method'], value, 'rtn')),
        choice('Block size', 'block', () => String(said(['blocks', 'size'], 32)), ['16', '32', '64', '128', '256'].map((size) => [size, `${size} weights`]), (value) => say(['blocks', 'size'], Number(value), 32)),
      ),
      threads(),
    ),
    documentEditor(),
  );
}

/** @param {string} id @param {string} text @param {string} note @param {Path} path @param {boolean} otherwise */
function tick(id, text, note, path, otherwise) {
  return h('label', { class: 'check' },
    h('input', { type: 'checkbox', id, checked: () => said(path, otherwise), onchange: (/** @type {Event} */ event) => say(path, /** @type {HTMLInputElement} */ (event.target).checked, otherwise) }),
    h('span', {}, text, h('span', { class: 'note' }, note)),
  );
}

function threads() {
  const most = capabilities.threads;
  return h('label', { class: 'field' },
    h('span', {}, 'Threads'),
    h('input', {
      type: 'number', id: 'threads', min: 1, max: Math.max(1, most), step: 1, disabled: most < 2, 'aria-describedby': 'threads-why', value: () => String(settings.value.threads),
      onchange: (/** @type {Event} */ event) => {
        const input = /** @type {HTMLInputElement} */ (event.target);
        const count = Math.min(Math.max(1, Math.round(Number(input.value) || 1)), Math.max(1, most));
        input.value = String(count);
        set({ threads: count });
      },
    }),
    h('span', { class: 'note', id: 'threads-why' }, () => abilities.value.at(-1)?.why ?? ''),
  );
}

/**
 * @param {string} label
 * @param {string} id
 * @param {() => string} value
 * @param {string[][] | (() => string[][])} options
 * @param {(value: string) => void} change
 */
export function choice(label, id, value, options, change) {
  const list = () => (typeof options === 'function' ? options() : options).map(([key, text]) => h('option', { value: key }, text));
  return h('label', { class: 'field' }, h('span', {}, label),
    h('select', { id, value: value, onchange: (/** @type {Event} */ event) => change(chosen(event)) }, ...(typeof options === 'function' ? [list] : list())));
}
