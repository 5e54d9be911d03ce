// @ts-check
/**
 * The samples, and the first of them as the model receives it. Wrong preprocessing is the most
 * common cause of bad accuracy.
 */

import { named } from '../../files.js';
import { h } from '../../library/dom.js';
import { pick } from '../../library/file-picker.js';
import { bytes, plural, real } from '../../library/format.js';
import { computed } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { sentence } from '../../state/messages.js';
import { model, modelChanged, randomData, ranges, run, samples, statistics } from '../../state/page.js';
import { fittingSamples } from './tasks.js';
import { pictureSettings } from './image-fields.js';
import { soundFields, waveform } from './sound-fields.js';
import { addRandomSamples, addSamples, clearSamples, removeSample } from './samples.js';
import { preview } from './state.js';
import { textFields, tokenList } from './text-fields.js';
import { skippedList, unusableList } from './unusable-samples.js';

/** @import { Preview } from '../../types.js' */

const shown = 100;
/** Endings of samples, labels and tokenizers. */
const accept = '.npy,.npz,.pb,.png,.jpg,.jpeg,.webp,.bmp,.gif,.avif,.wav,.csv,.tsv,.txt,.jsonl,.json,.tokens';
/** Keeps the list open when it is drawn again. */
let namesOpen = false;
const busy = () => run.value !== null;

export function view() {
  const add = (/** @type {File[]} */ files) => void addSamples(named(files));
  return h('section', { class: 'panel', 'aria-labelledby': 'data-title' },
    h('h2', { id: 'data-title' }, 'Data'),
    () => {
      const { files, refs, skipped, source, labels, names, labelSource, labelFailure, textNotes } = samples.value;
      const texts = textNotes.map((text) => h('p', { class: 'callout fair text-note' }, text));
      if (refs.length === 0 && skipped.length > 0) return h('p', { class: 'note' }, 'All samples are left out. Use some again, or add others.');
      if (refs.length === 0) {
        modelChanged.value;
        const fitting = model.value ? fittingSamples(model.value.card) : '';
        return [...texts, fitting && h('p', { id: 'fitting-samples' }, h('strong', {}, 'For this model: '), fitting), h('p', { class: 'note' }, 'Drop samples anywhere: .npy, .npz, images, .wav, test_data_set folders, tables (.csv), or texts (.txt, .jsonl, .csv) with tokenizer.json. 10 to 100 representative samples are enough. With labels (one folder per class, or a .csv or .txt with lines “sample, class”) the accuracy is measured, too.')];
      }
      const size = files.reduce((sum, file) => sum + file.blob.size, 0);
      return [
        h('p', { class: 'file' }, h('strong', {}, plural(refs.length, 'sample')), h('span', { class: 'note' }, `, ${bytes(size)}`)),
        source && h('p', { class: 'tag' }, source),
        labelSource && h('p', { class: 'note', id: 'labels-note' }, labelSource),
        labelFailure && h('p', { class: 'callout fair', id: 'labels-note' }, labelFailure),
        ...texts,
        h('details', { open: namesOpen, ontoggle: (/** @type {Event} */ event) => (namesOpen = /** @type {HTMLDetailsElement} */ (event.target).open) },
          h('summary', {}, 'Names'),
          h('ul', { class: 'names', tabindex: 0, role: 'list', 'aria-label': 'Names of the samples' }, ...refs.slice(0, shown).map((ref) => h('li', {}, h('span', {}, ref.name, labels.has(ref.name) && h('span', { class: 'note' }, `, class ${labels.get(ref.name)}${names.has(labels.get(ref.name) ?? '') ? ` (${names.get(labels.get(ref.name) ?? '')})` : ''}`)),
            h('button', { type: 'button', class: 'small', 'aria-label': `Remove ${ref.name}`, disabled: busy, onclick: () => void removeSample(ref.name) }, 'Remove')))),
          refs.length > shown && h('p', { class: 'note' }, `and ${refs.length - shown} more`),
        ),
      ];
    },
    () => {
      const shared = statistics.value?.summary;
      if (!shared) return null;
      const { samples: count, sources, skipped, demo } = shared;
      return h('div', { class: 'callout', id: 'statistics-note' },
        h('p', {}, h('strong', {}, `Statistics of ${plural(count, 'sample')}`), ` from ${plural(sources.length, 'source')} (${sources.join(', ')})${skipped > 0 ? `, ${skipped} left out` : ''}. The ranges follow from them.${demo ? ` ${randomData}` : ''}${samples.value.refs.length > 0 ? ' The samples of this page only measure the result.' : ''}`),
        h('button', { type: 'button', class: 'small', disabled: busy, onclick: async () => (await import('../sharing/statistics.js')).removeStatistics() }, 'Remove statistics'));
    },
    () => {
      const [given, file] = [ranges.value?.summary, ranges.value?.files[0]];
      if (!given || !file) return null;
      return h('div', { class: 'callout stack', id: 'ranges-note' },
        h('p', {}, h('strong', {}, file.path), `, ${given.title}, gives the ranges of ${plural(given.ranges, 'tensor')}${Object.keys(given.tensors).length > 0 ? `, and settings of ${plural(Object.keys(given.tensors).length, 'tensor')}` : ''}.${samples.value.refs.length > 0 ? ' The samples of this page only measure the result.' : ''}`),
        given.notes.map((note) => h('p', { class: 'note' }, sentence(note))),
        h('button', { type: 'button', class: 'small', disabled: busy, onclick: async () => (await import('../sharing/ranges.js')).removeRanges() }, 'Remove ranges'));
    },
    unusableList,
    skippedList,
    h('div', { class: 'row' },
      ...pick('Add samples', { id: 'choose-samples', accept, multiple: true, disabled: busy }, add),
      ...pick('Add a folder', { id: 'choose-folder', folder: true, disabled: busy }, add),
      h('button', { type: 'button', class: 'quiet', id: 'random-samples', hidden: () => samples.value.refs.length > 0 || !model.value || model.value.wanted.length > 0, disabled: busy, onclick: () => void addRandomSamples() }, 'Try with random data'),
      h('button', { type: 'button', class: 'quiet', hidden: () => samples.value.refs.length + samples.value.skipped.length === 0, disabled: busy, onclick: clearSamples }, 'Remove all'),
    ),
    sharing(),
  );
}

/** Actions that share a calibration; they load when they are first opened. */
function sharing() {
  const inside = h('div', {});
  const load = async () => inside.childElementCount === 0 && inside.append(...(await import('../sharing/view.js')).view());
  return h('details', { id: 'sharing', ontoggle: load }, h('summary', {}, 'Share a calibration'), inside);
}

/**
 * The first decoded sample beside the preprocessing settings. Built once, so that fields keep their
 * focus.
 */
export function samplePreview() {
  const hasSamples = computed(() => samples.value.refs.length > 0);
  return () => {
    modelChanged.value;
    if ((model.value?.wanted.length ?? 0) > 0) return null;
    return hasSamples.value ? sample() : invitation();
  };
}

function invitation() {
  return h('section', { class: 'panel asks' },
    h('h2', {}, 'Next: add some samples'),
    h('p', {}, 'Calibration runs them through the float model and records the range of every tensor. The first sample is shown here as the model will receive it.'),
    h('div', { class: 'row' }, ...pick('Choose samples', { class: 'primary', id: 'invite-samples', accept, multiple: true, disabled: busy }, (files) => void addSamples(named(files)))),
  );
}

function sample() {
  return h('section', { class: 'panel', 'aria-labelledby': 'sample-title' },
    h('h2', { id: 'sample-title' }, 'The first sample, as the model sees it'),
    h('div', { class: 'sample' }, h('div', {}, () => decoded()), pictureSettings(), soundFields(), textFields()),
  );
}

function decoded() {
  const now = preview.value;
  if (!now) return h('p', { class: 'note' }, 'Decoding the first sample.');
  const { previews = [], first = null } = now.decoded ?? {};
  return [
    h('p', { class: 'note' }, now.name),
    now.failure && h('p', { class: 'callout bad' }, now.failure),
    h('div', { class: 'pictures' }, now.picture && original(now.picture), /\.wav$/i.test(now.name) && first ? heard(first) : seen(previews[0], first)),
    ...previews.flatMap((one) => (one.tokens.length > 0 ? [tokenList(one.tokens)] : [])),
    previews.length > 0 && table(
      ['Input', 'Type', 'Shape', 'Min', 'Max', 'Mean', 'Std'],
      previews.map((one, index) => [
        h('code', {}, one.input || model.value?.card.inputs[index]?.name || ''),
        String(one.element).toLowerCase(), one.shape.join('×'), ...[one.min, one.max, one.mean, one.std].map((value) => (value === null ? '' : real(value))),
      ]),
      [3, 4, 5, 6],
    ),
    ...previews.flatMap((one) => one.notes ?? []).map((text) => h('p', { class: 'note' }, text)),
  ];
}

/** @param {Blob} picture */
function original(picture) {
  const address = URL.createObjectURL(picture);
  const free = () => URL.revokeObjectURL(address);
  return h('figure', {}, h('img', { src: address, alt: 'The file of the first sample', onload: free, onerror: free }), h('figcaption', {}, 'The file'));
}

/** @param {Float32Array} values */
function heard(values) {
  const canvas = waveform(values);
  return canvas && h('figure', {}, canvas, h('figcaption', {}, 'The waveform'));
}

/** @param {Preview | undefined} described @param {Float32Array | null} values */
function seen(described, values) {
  const canvas = tensorCanvas(described, values, `The first sample as a tensor of ${described?.shape.join(' by ')}`);
  return canvas && h('figure', {}, canvas, h('figcaption', {}, 'The tensor'));
}

/**
 * Draws the tensor as an image if its shape is one; its minimum is black, its maximum white.
 *
 * @param {Preview | undefined} described
 * @param {Float32Array | null} values
 * @param {string} label
 */
export function tensorCanvas(described, values, label) {
  const place = described && pictureShape(described.shape);
  if (!described || !values || !place) return null;
  const { width, height, channels, pixel, channel } = place;
  const canvas = h('canvas', { width, height, role: 'img', 'aria-label': label });
  const context = canvas.getContext('2d');
  if (!context) return null;
  const image = context.createImageData(width, height);
  const low = described.min ?? 0;
  const spread = 255 / ((described.max ?? 1) - low || 1);
  for (let at = 0; at < width * height; at += 1) {
    for (let colour = 0; colour < 3; colour += 1) {
      const value = values[at * pixel + (channels === 3 ? colour : 0) * channel];
      image.data[at * 4 + colour] = (value - low) * spread;
    }
    image.data[at * 4 + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** @param {number[]} shape */
function pictureShape(shape) {
  const [batch, a, b, c] = shape;
  if (shape.length !== 4 || batch < 1) return null;
  const area = (/** @type {number} */ width, /** @type {number} */ height) => width > 7 && height > 7 && width * height <= 4096 * 4096;
  if ((a === 1 || a === 3) && area(b, c)) return { channels: a, height: b, width: c, pixel: 1, channel: b * c };
  if ((c === 1 || c === 3) && area(a, b)) return { channels: c, height: a, width: b, pixel: c, channel: 1 };
  return null;
}
