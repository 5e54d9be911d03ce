// @ts-check
/**
 * A model of any size: its summary, the choices, the forecast, the conversion and its files. It is
 * shown in place of the studio.
 */

import { named } from '../../files.js';
import { computesZeroPoints } from '../../settings-document.js';
import { chunk } from '../../streamed-model.js';
import { fill, h } from '../../library/dom.js';
import { download } from '../../library/download.js';
import { choice } from '../../library/fields.js';
import { pick } from '../../library/file-picker.js';
import { bytes, count, duration, plural } from '../../library/format.js';
import { effect, signal } from '../../library/signals.js';
import { fact, table } from '../../library/table.js';
import { large } from '../../state/page.js';
import { canChooseFolder, chooseFolder, convert, discard, keepPlan, pace, stop } from './conversion.js';
import { report } from './outcome.js';
import { chosen, form, inBlocks, job, limit, limits, place, planned, removing, result, stage } from './state.js';

/** @import { BlockSettings, ModelSummary } from '../../types.js' */
/** @import { PlannedStream } from '../../calls.js' */

const busy = () => job.value !== null || removing.value;

export function view() {
  keepPlan();
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !event.defaultPrevented) stop();
  });
  const whole = h('div', { class: 'large' });
  fill(whole, content());
  // Focus follows the work, so that it is never left on a removed button.
  let before = stage.peek();
  effect(() => {
    const now = stage.value;
    if (now === before) return;
    before = now;
    const target = { running: '[data-focus=converting]', done: '[data-focus=converted]', ready: '#large-forecast' }[now];
    queueMicrotask(() => /** @type {HTMLElement | null} */ (whole.querySelector(target))?.focus());
  });
  return whole;
}

function content() {
  return [
    h('h1', { class: 'unseen' }, 'A large model, piece by piece'),
    h('section', { class: 'panel', 'aria-labelledby': 'large-title' },
      h('h2', { id: 'large-title', tabindex: -1, 'data-focus': 'large' }, 'A large model'),
      h('p', { class: 'file' }, h('strong', {}, () => large.value?.model.name ?? '')),
      h('p', { class: 'note' }, 'It is read and written piece by piece, so it may be larger than the memory. Your files are not changed, and nothing is sent anywhere.'),
      () => wanted(),
      () => large.value?.model.card && summary(large.value.model.card),
      h('div', { class: 'row' }, h('button', { type: 'button', class: 'quiet', id: 'close-large', disabled: busy, onclick: close }, 'Close this model'))),
    h('div', { class: 'gap', hidden: () => !large.value?.model.card },
      choices(),
      h('div', {}, () => (stage.value === 'running' ? progress() : stage.value === 'done' ? finished() : ready())),
    ),
  ];
}

function close() {
  const open = large.peek();
  large.value = null;
  open?.model.close().catch(() => {});
}

/** Asks for the files of weights that are missing. */
function wanted() {
  const open = large.value;
  if (!open || open.model.card) return null;
  const missing = open.model.missing(open.files);
  return h('div', { class: 'asks panel' },
    h('h3', {}, 'Its weights are in other files'),
    h('p', {}, 'Add these files, which were saved together with the model:'),
    h('ul', {}, ...missing.map((name) => h('li', {}, h('code', {}, name)))),
    h('div', { class: 'row' }, ...pick(missing.length === 1 ? 'Choose the file' : 'Choose the files', { class: 'primary', id: 'choose-weights', multiple: true }, (files) => open.add(named(files)))),
  );
}

/** @param {ModelSummary} card */
function summary(card) {
  const nodes = card.operators.reduce((sum, [, times]) => sum + times, 0);
  return h('div', { class: 'gap' },
    ...card.warnings.map((text) => h('p', { class: 'callout fair' }, text)),
    h('dl', { class: 'facts' },
      ...fact('Size', bytes(card.dataFiles.reduce((sum, file) => sum + file.bytes, card.bytes))),
      ...fact('Parameters', count(card.parameters)),
      ...fact('Operators', count(nodes)),
      ...fact('Opset', String(card.opset)),
      ...fact('Producer', card.producer || 'unknown'),
    ),
    h('details', {},
      h('summary', {}, 'Inputs, outputs and operators'),
      table(['', 'Name', 'Type', 'Shape'], [
        ...card.inputs.map((port) => ['in', h('code', {}, port.name), port.element, port.shape]),
        ...card.outputs.map((port) => ['out', h('code', {}, port.name), port.element, port.shape]),
      ]),
      table(['Operator', 'Nodes'], card.operators.map(([name, times]) => [name, count(times)]), [1]),
    ),
  );
}

/**
 * @template {keyof BlockSettings} K
 * @param {K} key @param {BlockSettings[K]} value @param {BlockSettings[K]} otherwise
 */
function set(key, value, otherwise) {
  const { [key]: _, ...rest } = chosen.peek();
  chosen.value = value === otherwise ? rest : { ...rest, [key]: value };
}

/** A sentence or two on each form. */
const explained = {
  q4: 'The large matrices get 2 to 8 bits, with a scale for each block. This is the form in which ONNX Runtime and transformers.js run language models.',
  q4f16: 'As q4, and everything else is in half precision: for WebGPU.',
  fp16: 'All weights and values are in half precision. Weights beyond its range stay as they are.',
  quantized: 'Weights have 8 bits, and products measure their inputs while they run: for processors.',
  weights: 'Weights have 8 bits and become floats while the model runs.',
};

function choices() {
  return h('section', { class: 'panel', 'aria-labelledby': 'large-choices' },
    h('h2', { id: 'large-choices' }, 'Smaller weights'),
    h('p', { class: 'note' }, () => explained[form.value]),
    h('fieldset', { disabled: busy },
      h('legend', { class: 'unseen' }, 'Quantization'),
      h('div', { class: 'columns' },
        choice('Form', 'large-form', () => form.value, [['q4', 'q4: blocks'], ['q4f16', 'q4f16: blocks between halves'], ['fp16', 'fp16: halves'], ['quantized', 'quantized: 8-bit products'], ['weights', 'weights: 8-bit weights, products of floats']], (value) => (form.value = /** @type {import('./state.js').ResultForm} */ (value))),
        choice('Files of weights', 'large-limit', () => String(limit.value), limits.map((size) => [String(size), size === Number.MAX_SAFE_INTEGER ? 'one file' : `up to ${bytes(size)}${size === chunk ? ', for browsers' : ''}`]), (value) => (limit.value = Number(value))),
      ),
      h('div', { class: 'columns', hidden: () => !inBlocks.value },
        choice('Bits', 'large-bits', () => String(chosen.value.bits ?? 4), [['2', '2'], ['4', '4'], ['8', '8']], (value) => set('bits', Number(value), 4)),
        choice('Block size', 'large-block', () => String(chosen.value.size ?? 32), ['16', '32', '64', '128', '256'].map((size) => [size, `${size} weights`]), (value) => set('size', Number(value), 32)),
        choice('Method', 'large-method', () => String(chosen.value.method ?? 'rtn'), [['rtn', 'rtn: ONNX Runtime’s'], ['search', 'search: more accurate, with zero points'], ['hqq', 'hqq: ignores outliers'], ['k_quant', 'k_quant: least squares']], (value) => set('method', /** @type {BlockSettings['method']} */ (value), 'rtn'))),
      h('label', { class: 'check', hidden: () => !inBlocks.value || computesZeroPoints(chosen.value.method) },
        h('input', { type: 'checkbox', id: 'large-zero-points', checked: () => chosen.value.symmetric === false, onchange: (/** @type {Event} */ event) => set('symmetric', !(/** @type {HTMLInputElement} */ (event.target).checked), true) }),
        h('span', {}, 'A zero point for each block', h('span', { class: 'note' }, 'Takes a few percent more bytes. With the search it is the most accurate form of its size without samples.'))),
      h('label', { class: 'check', hidden: () => !inBlocks.value },
        h('input', { type: 'checkbox', id: 'large-embeddings', checked: () => chosen.value.embeddings ?? false, onchange: (/** @type {Event} */ event) => set('embeddings', /** @type {HTMLInputElement} */ (event.target).checked, false) }),
        h('span', {}, 'Quantize embedding tables', h('span', { class: 'note' }, 'A table that is also the head is stored once. Not with hqq.'))),
      h('label', { class: 'check', hidden: () => !inBlocks.value },
        h('input', { type: 'checkbox', id: 'large-mixed', checked: () => chosen.value.mixed !== undefined, onchange: (/** @type {Event} */ event) => set('mixed', /** @type {HTMLInputElement} */ (event.target).checked ? 'k_quant_mixed' : undefined, undefined) }),
        h('span', {}, 'Eight bits for the layers that count most', h('span', { class: 'note' }, 'The head, and some value and down projections.'))),
    ),
    h('div', { class: 'gap' },
      h('h3', {}, 'Where the result goes'),
      h('p', { id: 'large-place' }, () => (place.value.folder ? `Into the folder ${place.value.folder.name}.` : 'Into this browser’s storage; then you download the files.')),
      canChooseFolder() && h('div', { class: 'row' },
        h('button', { type: 'button', id: 'choose-folder', disabled: busy, onclick: () => void chooseFolder() }, 'Choose a folder'),
        h('button', { type: 'button', class: 'quiet', hidden: () => !place.value.folder, disabled: busy, onclick: () => (place.value = { folder: null }) }, 'Use the browser’s storage')),
    ),
  );
}

/** The forecast, and the buttons that begin. */
function ready() {
  const { told, failure } = planned.value;
  return h('section', { class: 'panel', 'aria-labelledby': 'large-forecast' },
    h('h2', { id: 'large-forecast', tabindex: -1 }, 'Forecast'),
    failure ? h('p', { class: 'callout bad', role: 'alert' }, failure) : !told ? h('p', { class: 'note' }, 'Planning the files and measuring the speed.') : forecast(told),
    told && begin(told),
  );
}

/** @param {PlannedStream} told */
function forecast({ plan, rate, kept }) {
  const left = plan.bytesToRead - (kept ?? 0);
  const source = large.peek()?.model.card;
  const before = source ? source.dataFiles.reduce((sum, file) => sum + file.bytes, source.bytes) : 0;
  return h('div', { class: 'gap' },
    h('dl', { class: 'facts', id: 'large-facts' },
      ...fact('Size', `${bytes(plan.bytesToWrite)}${before > 0 ? `, ${((100 * plan.bytesToWrite) / before).toFixed(0)} %` : ''}`),
      ...fact('Files of weights', count(plan.files.length)),
      ...fact('Time', rate > 0 ? `about ${duration(left / rate)}` : 'unknown'),
      ...fact('Memory, at most', bytes(plan.memory)),
      ...fact(form.peek() === 'fp16' ? 'In half precision' : 'Integer weights', `${count(plan.quantized)} of ${plural(plan.nodes, 'operator')}`),
    ),
    h('p', { class: 'note' }, `For ${plan.model}. The time comes from a trial without writing, and the memory is that beside the graph.`),
    notes(plan.notes),
    plan.float.length > 0 && h('details', {}, h('summary', {}, 'Stays float'), table(['Why', 'Nodes'], plan.float.map(([why, nodes]) => [why, count(nodes)]), [1])),
  );
}

/** @param {string[]} texts */
function notes(texts) {
  return texts.length > 0 && h('details', {}, h('summary', {}, plural(texts.length, 'note')), h('ul', {}, ...texts.map((text) => h('li', {}, text))));
}

/** @param {PlannedStream} told */
function begin({ plan, kept, misfit }) {
  const again = h('button', { type: 'button', id: 'discard', disabled: busy, onclick: () => void discard() }, 'Discard it');
  if (misfit) {
    return h('div', { class: 'callout fair gap', id: 'large-misfit' },
      h('p', {}, `There is another result for ${plan.model} at this place, complete or not. It can’t go on: ${misfit}.`), h('div', { class: 'row' }, again));
  }
  if (kept !== null) {
    return h('div', { class: 'gap', id: 'large-kept' },
      h('p', {}, `An earlier conversion of this model stopped at ${((100 * kept) / Math.max(1, plan.bytesToRead)).toFixed(0)} %. What it wrote is kept.`),
      h('div', { class: 'row' }, h('button', { type: 'button', class: 'primary', id: 'resume', disabled: busy, onclick: () => void convert(true) }, 'Go on'), again));
  }
  return h('div', { class: 'row' }, h('button', { type: 'button', class: 'primary', id: 'convert', onclick: () => void convert(false) }, 'Convert'));
}

function progress() {
  const clock = signal(performance.now());
  const part = () => {
    const { done = 0, of = 0 } = job.value?.progress ?? {};
    return of > 0 ? done / of : 0;
  };
  const panel = h('section', { class: 'panel', 'aria-labelledby': 'large-progress' },
    h('h2', { id: 'large-progress', tabindex: -1, 'data-focus': 'converting' }, 'Converting'),
    h('progress', { max: 1, 'aria-labelledby': 'large-progress', value: () => String(part()) }),
    h('div', { class: 'row' },
      h('button', { type: 'button', id: 'stop', onclick: stop }, 'Stop'),
      h('span', { class: 'note' }, 'What was made is kept. You can go on later, even if this tab is closed.')),
    h('dl', { class: 'facts live' },
      ...live('Read', () => `${bytes(job.value?.progress.done)} of ${bytes(job.value?.progress.of)}`),
      ...live('Speed', () => pace(clock.value).rate || '–'),
      ...live('Time left', () => pace(clock.value).left.replace(' left', '') || '–'),
      ...live('WebAssembly memory', () => bytes(job.value?.progress.memory?.pages)),
    ),
  );
  const timer = setInterval(() => (clock.value = performance.now()), 250);
  effect(() => {
    if (!job.value) clearInterval(timer);
  });
  return panel;
}

/** @param {string} name @param {() => string} value */
function live(name, value) {
  return [h('div', {}, h('dt', {}, name), h('dd', {}, value))];
}

function finished() {
  const now = result.value;
  if (!now) return null;
  const { files, took, peak, folder, outcome } = now;
  const whole = files.reduce((sum, file) => sum + file.bytes, 0);
  return h('section', { class: 'panel', 'aria-labelledby': 'large-done' },
    h('h2', { id: 'large-done', tabindex: -1, 'data-focus': 'converted' }, 'The quantized model is ready'),
    h('dl', { class: 'facts' }, ...fact('Size', bytes(whole)), ...(took === null ? [] : fact('Time', duration(took))), ...(peak > 0 ? fact('Peak memory of the engine', bytes(peak)) : [])),
    folder
      ? h('p', { id: 'large-written' }, `The folder ${folder} has ${files.map(({ name }) => name).join(', ')}.`)
      : [
        h('p', {}, 'Download all of these into one folder:'),
        h('ul', { class: 'files' }, ...files.map(({ name, blob }) => blob && h('li', {}, download(() => blob, 'application/octet-stream', name, name, '')))),
        h('p', { class: 'note' }, 'This browser keeps them until you remove them.'),
        h('div', { class: 'row' }, h('button', { type: 'button', id: 'discard', disabled: busy, onclick: () => void discard() }, 'Remove them from this browser')),
      ],
    outcome && h('h3', {}, 'Report'),
    outcome && report(outcome, files[0].name),
  );
}
