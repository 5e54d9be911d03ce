// @ts-check
/** The settings with explanations. Built once; only values change, so focus stays in place. */

import { methods } from '../../methods.js';
import { canonical, computesZeroPoints, defaultMethod, get } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { choice } from '../../library/fields.js';
import { effect } from '../../library/signals.js';
import { abilities, capabilities, run, settings } from '../../state/page.js';
import { setThreads } from '../../state/session.js';
import { documentEditor, documentSteps } from './document-editor.js';
import { goalCards, servesGoal } from './goals-view.js';
import { adopt, change } from './undo.js';

/** @import { Path } from '../../settings-document.js' */

/** True during a calibration. A quick run ends in a moment, and the next one follows it. */
const busy = () => run.value !== null && !run.value.quick;

/** @type {[string, string, string][]} */
const schemes = [
  ['static', 'Static, from samples', 'Weights and activations become integers, with scales calibrated on your samples. Gives the smallest and fastest models.'],
  ['dynamic', 'Dynamic, at run time', 'Activations are quantized at each inference. Needs no samples; for transformers and LSTMs on CPUs.'],
  ['weights', 'Weights only, 8 bits', 'Needs no samples. A quarter of the size, computed in float.'],
  ['blocks', 'Block-wise weights', '2 to 8 bits, for the large matrices of language models. Needs no samples, except with gptq and awq.'],
  ['float16', 'Half precision', 'Half the size, no integers. Needs no samples; with some, activations that are too large for it stay float32.'],
];
/** @type {[string, string][]} */
const formats = [
  ['qdq', 'QDQ (every runtime)'],
  ['qoperator', 'Integer operators (ONNX Runtime)'],
  ['simulated', 'Simulated: same results, float weights'],
];
/** @type {[string, string][]} */
const targets = [
  ['any', 'anywhere'],
  ['onnxruntime', 'ONNX Runtime'],
  ['onnxruntime-web', 'onnxruntime-web'],
  ['transformers.js', 'transformers.js'],
  ['qnn', 'Qualcomm (QNN)'],
  ['tensorrt', 'TensorRT'],
  ['openvino', 'OpenVINO'],
  ['coreml', 'Core ML'],
  ['arm-cmsis', 'Arm CMSIS-NN'],
];
/** @type {[string, string, string][]} */
const overflows = [
  ['float32', 'stay float32', 'Their nodes compute in float32, with casts around them.'],
  ['clip', 'clipped to ±65504', 'Their nodes are halves too; results may change.'],
  ['rescale', 'rescaled', 'Stored divided by a power of two that linear neighbours take up; results stay.'],
];

/**
 * Presets of the whole document.
 *
 * @type {[string, string, import('../../types.js').Settings][]}
 */
const careful = [
  ['balanced', 'Balanced', {}],
  ['fast', 'Fast: no mixed precision', { guard: false }],
  ['onnxruntime', 'As ONNX Runtime (minmax)', { method: 'minmax' }],
];

/** The value in the document, or its default. @param {Path} path @param {unknown} otherwise */
const valueAt = (path, otherwise) => get(settings.value.document, path) ?? otherwise;
/**
 * Sets a value; the default removes the key.
 *
 * @param {Path} path
 * @param {unknown} value
 * @param {unknown} otherwise
 */
const setValue = (path, value, otherwise) => change(path, value === otherwise ? undefined : value);
const scheme = () => /** @type {string} */ (valueAt(['scheme'], 'static'));
/** The choice that the document makes; a block can have either algorithm. */
const fineTuning = () => {
  if (valueAt(['finetune', 'blocks'], false)) return 'blocks';
  const chosen = valueAt(['finetune'], 'none');
  return typeof chosen === 'string' ? chosen : String(valueAt(['finetune', 'algorithm'], 'adaround'));
};

export function view() {
  return h('section', { class: 'panel', 'aria-labelledby': 'settings-title' },
    h('h2', { id: 'settings-title' }, 'Settings'),
    goalCards(),
    documentSteps(),
    advanced(),
  );
}

/** Every setting, for those who look for one, and for settings that serve no goal. */
function advanced() {
  const isStatic = () => scheme() === 'static';
  const overflow = () => String(valueAt(['overflow'], 'float32'));
  const whole = h('details', { id: 'advanced-settings', open: !servesGoal.peek() },
    h('summary', {}, 'Advanced'),
    h('fieldset', { disabled: busy },
      h('legend', { class: 'unseen' }, 'Quantization'),
      choice('Preset', 'whole', () => careful.find(([, , document]) => canonical(document) === canonical(settings.value.document))?.[0] ?? '',
        [['', 'Custom'], ...careful.map(([key, text]) => [key, text])], (key) => {
          const found = careful.find(([name]) => name === key);
          if (found) adopt(found[2]);
        }),
      choice('Scheme', 'scheme', scheme, schemes.map(([key, text]) => [key, text]), (value) => setValue(['scheme'], value, 'static')),
      h('p', { class: 'note' }, () => schemes.find(([key]) => key === scheme())?.[2] ?? ''),
      choice('Runs on', 'target', () => String(valueAt(['target'], 'any')), targets, (value) => setValue(['target'], value, 'any')),
      h('div', { class: 'gap', hidden: () => !isStatic() },
        choice('Range method', 'method', () => String(valueAt(['method'], defaultMethod)), () => {
          const now = String(valueAt(['method'], defaultMethod));
          return methods.some(([key]) => key === now) ? methods : [...methods, [now, now]];
        }, (method) => setValue(['method'], method, defaultMethod)),
        h('p', { class: 'note', id: 'method-cost', hidden: () => valueAt(['method'], defaultMethod) !== 'auto' },
          'auto gives up to twelve early activations 16 bits. This makes a run about 20 % slower, or more where they are large. minmax or “fine_first: 0” avoids it.'),
        choice('Activations', 'activations', () => String(valueAt(['activations', 'type'], 'u8')),
          [['u8', 'uint8 (widest support)'], ['i8', 'int8'], ['u16', 'uint16'], ['i16', 'int16']], (value) => setValue(['activations', 'type'], value, 'u8')),
        choice('Weight rounding', 'rounding', () => String(valueAt(['rounding'], 'nearest')), [['nearest', 'to nearest'], ['gptq', 'GPTQ (slower, more accurate)'], ['closed-form', 'GPTQ for quantized inputs (slow)']], (value) => setValue(['rounding'], value, 'nearest')),
        choice('Fine-tuning', 'finetune', fineTuning, [['none', 'none'], ['adaround', 'AdaRound (minutes)'], ['adaquant', 'AdaQuant (minutes)'], ['blocks', 'blocks of layers (longer)']], (value) => setValue(['finetune'], value === 'blocks' ? { blocks: true } : value, 'none')),
        choice('Format', 'format', () => String(valueAt(['format'], 'qdq')), formats, (value) => setValue(['format'], value, 'qdq')),
        tick('per-channel', 'Per-channel weight scales', 'More accurate; a few old runtimes need one scale per tensor.', ['weights', 'per_channel'], true),
        tick('equalize', 'Equalize channels', 'Rescales neighbouring layers so that their channels have similar ranges. Takes one more pass over the samples.', ['equalize'], false),
        tick('guard', 'Mixed precision', 'Tensors for which 8 bits are too coarse get 16 bits or stay float; the result lists them.', ['guard'], true),
      ),
      h('div', { class: 'gap', hidden: () => scheme() !== 'blocks' },
        choice('Bits', 'bits', () => String(valueAt(['blocks', 'bits'], 4)), [['2', '2'], ['4', '4'], ['8', '8']], (value) => setValue(['blocks', 'bits'], Number(value), 4)),
        choice('Method', 'block-method', () => String(valueAt(['blocks', 'method'], 'rtn')), [['rtn', 'rtn'], ['search', 'search'], ['hqq', 'HQQ'], ['k_quant', 'k-quant'], ['gptq', 'gptq (with samples)'], ['awq', 'awq (with samples)']], (value) => setValue(['blocks', 'method'], value, 'rtn')),
        choice('Block size', 'block', () => String(valueAt(['blocks', 'size'], 32)), ['16', '32', '64', '128', '256'].map((size) => [size, `${size} weights`]), (value) => setValue(['blocks', 'size'], Number(value), 32)),
        h('div', { hidden: () => computesZeroPoints(valueAt(['blocks', 'method'], 'rtn')) },
          h('label', { class: 'check' },
            h('input', { type: 'checkbox', id: 'block-zero-points', checked: () => valueAt(['blocks', 'symmetric'], true) === false, onchange: (/** @type {Event} */ event) => setValue(['blocks', 'symmetric'], !(/** @type {HTMLInputElement} */ (event.target).checked), true) }),
            h('span', {}, 'A zero point for each block', h('span', { class: 'note' }, 'Takes a few percent more bytes. More accurate with search and awq.')))),
      ),
      h('div', { class: 'gap', hidden: () => scheme() !== 'float16' },
        choice('Activations too large for float16', 'overflow', overflow, overflows.map(([key, text]) => [key, text]), (value) => setValue(['overflow'], value, 'float32')),
        h('p', { class: 'note' }, () => `${overflows.find(([key]) => key === overflow())?.[2] ?? ''} Found with samples only.`),
        tick('keep-io', 'Inputs and outputs stay float32', 'The model takes and gives float32; inside it computes in half precision.', ['keep_io'], true),
      ),
      threads(),
    ),
    documentEditor(),
  );
  // Settings that no card shows must be in sight.
  effect(() => {
    if (!servesGoal.value) whole.open = true;
  });
  return whole;
}

/** @param {string} id @param {string} text @param {string} note @param {Path} path @param {boolean} otherwise */
function tick(id, text, note, path, otherwise) {
  return h('label', { class: 'check' },
    h('input', { type: 'checkbox', id, checked: () => valueAt(path, otherwise), onchange: (/** @type {Event} */ event) => setValue(path, /** @type {HTMLInputElement} */ (event.target).checked, otherwise) }),
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
        setThreads(count);
      },
    }),
    h('span', { class: 'note', id: 'threads-why' }, () => abilities.value.at(-1)?.why ?? ''),
  );
}
