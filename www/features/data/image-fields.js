// @ts-check
/**
 * Fields for the image preprocessing: size, resizing, values. Each has the proposed value until it
 * is changed.
 */

import { h } from '../../library/dom.js';
import { choice } from '../../library/fields.js';
import { table } from '../../library/table.js';
import { presets, run, samples, settings } from '../../state/page.js';
import { asChosen, asProposed, hasPictures, proposal, withoutValues } from './image-settings.js';
import { presetNames } from './preprocessings.js';
import { setPreprocessing, tryPreprocessings } from './samples.js';
import { trial } from './state.js';

/** @import { Reason } from '../../types.js' */

const ways = [
  ['shorter', 'Resize the shorter side, crop the center'], ['exact', 'Stretch'], ['letterbox', 'Letterbox (grey padding)'], ['none', 'No resizing'],
];

const parts = /** @type {Record<Reason['of'], string>} */ ({ size: 'Size', resize: 'Resize', values: 'Values', layout: 'Layout' });
const certainties = /** @type {Record<Reason['certainty'], string>} */ ({ sure: 'sure', likely: 'likely', guess: 'a guess: check it' });

const busy = () => run.value !== null;
/** The current value of a field: the user's, or the preset's. @param {string} key */
const image = (key) => settings.value.image[key] ?? presets.value[settings.value.preset]?.[key];
/** @param {Record<string, unknown>} change */
const setImage = (change) => {
  const all = Object.entries({ ...settings.peek().image, ...change });
  setPreprocessing({ image: Object.fromEntries(all.filter(([, value]) => value !== undefined)) });
};

/** The image preprocessing, shown beside the decoded image. */
export function pictureSettings() {
  return h('fieldset', { disabled: busy, hidden: () => !hasPictures.value, id: 'picture-settings' },
    h('legend', {}, 'Image preprocessing'),
    size(),
    choice('Resize', 'resize', () => image('resize') ?? 'shorter', ways, (resize) => setImage({ resize, shorterSide: undefined })),
    h('div', { hidden: () => image('resize') !== 'letterbox' }, number('Padding, 0 to 255', 'pad', () => image('pad'), (pad) => setImage({ pad: within(pad, 0, 255) }), { min: 0, max: 255, step: 1 })),
    choice('Values', 'preset', () => settings.value.preset, () => Object.keys(presets.value).map((key) => [key, presetNames[key] ?? key]),
      (preset) => setPreprocessing({ preset, image: withoutValues(settings.peek().image) })),
    h('details', {},
      h('summary', {}, 'Channels, mean and standard deviation'),
      choice('Channel order', 'order', () => image('order') ?? 'rgb', [['rgb', 'RGB'], ['bgr', 'BGR']], (order) => setImage({ order })),
      choice('Layout', 'layout', () => image('layout') ?? '', [['', 'From the input’s shape'], ['nchw', 'NCHW'], ['nhwc', 'NHWC']], (layout) => setImage({ layout: layout || undefined })),
      number('Scale', 'scale', () => image('scale'), (scale) => setImage({ scale })),
      triple('Mean', 'mean'),
      triple('Standard deviation', 'std'),
      h('p', { class: 'note' }, 'A pixel becomes (pixel × scale − mean) ÷ standard deviation.'),
    ),
    reasons(),
    byLabels(),
  );
}

/** Fields for height and width, if the model leaves them open. */
function size() {
  const open = () => proposal.value?.open ?? false;
  const asItIs = () => image('resize') === 'none';
  const multiple = () => proposal.value?.multiple ?? 1;
  const odd = () => !asItIs() && [image('height'), image('width')].some((side) => side % multiple() !== 0);
  const side = (/** @type {'height' | 'width'} */ key, /** @type {string} */ label) => h('input', {
    type: 'number', id: `image-${key}`, min: 1, max: 16384, step: () => multiple(), 'aria-label': label, 'aria-describedby': 'image-size-note',
    disabled: asItIs, 'aria-invalid': () => (odd() && image(key) % multiple() !== 0 ? 'true' : null), value: () => String(image(key) ?? ''),
    onchange: (/** @type {Event} */ event) => {
      const number = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
      if (Number.isFinite(number)) setImage({ [key]: within(number, 1, 16384), shorterSide: undefined });
    },
  });
  const note = () => {
    if (!open()) return '';
    if (asItIs()) return `Each image keeps its size.${multiple() > 1 ? ` The model needs multiples of ${multiple()}; other sizes may fail.` : ''}`;
    if (odd()) return `The model takes multiples of ${multiple()}: ${nearest(image('height'))} × ${nearest(image('width'))}, for instance.`;
    return multiple() > 1 ? `Multiples of ${multiple()}.` : '';
  };
  const nearest = (/** @type {number} */ length) => Math.max(1, Math.round(length / multiple())) * multiple();
  return h('div', { class: 'field', role: 'group', 'aria-label': 'Size', hidden: () => !open() },
    h('span', {}, 'Size, height × width'),
    h('span', { class: 'two' }, side('height', 'Height'), h('span', { 'aria-hidden': 'true' }, '×'), side('width', 'Width')),
    h('span', { class: 'note', id: 'image-size-note' }, note));
}

/** The reasons for the proposal, and the button that restores it. */
function reasons() {
  return h('div', { class: 'gap', hidden: () => !proposal.value },
    h('details', { id: 'proposal' },
      h('summary', {}, () => (asProposed.value ? 'As proposed for this model' : byTrial() ? 'Chosen by the labels; the proposal for this model' : 'Changed; the proposal for this model')),
      h('ul', {}, () => (proposal.value?.reasons ?? []).map(({ of, certainty, why }) => h('li', {}, `${parts[of]}: ${why} (${certainties[certainty]}).`)))),
    h('button', {
      type: 'button', class: 'small', id: 'as-proposed', hidden: () => asProposed.value,
      onclick: () => {
        const proposed = proposal.peek();
        if (proposed) setPreprocessing(asChosen(proposed));
      },
    }, 'Restore the proposal'));
}

/** True if the settings are those that the labels chose. */
function byTrial() {
  const taken = trial.value?.taken;
  const { preset, image } = settings.value;
  return taken !== undefined && taken.preset === preset && JSON.stringify(taken.image) === JSON.stringify(image);
}

/** The outcome of the trial with the labels, with all that were tried, and the button for another. */
function byLabels() {
  const possible = () => samples.value.labels.size > 1 && !samples.value.source && trial.value?.state !== 'running';
  return h('div', { class: 'gap', id: 'trial', hidden: () => !trial.value && !possible() },
    h('p', { class: 'note' }, () => (trial.value?.state === 'running' ? 'The usual preprocessings are being tried with the labels.' : trial.value?.text ?? '')),
    () => {
      const { tried = [] } = trial.value ?? {};
      return tried.length > 0 && h('details', {},
        h('summary', {}, `All ${tried.length} that were tried`),
        table(['Preprocessing', 'Right', 'Pictures'], tried.map(({ name, right, of }) => [name, String(right), String(of)]), [1, 2]));
    },
    h('button', { type: 'button', class: 'small', id: 'try-labels', hidden: () => !possible(), onclick: () => void tryPreprocessings({ again: true }) }, 'Try the usual ones with the labels'));
}

/** @param {number} value @param {number} least @param {number} most */
const within = (value, least, most) => Math.min(most, Math.max(least, Math.round(value)));

/**
 * @param {string} label
 * @param {string} id
 * @param {() => number | undefined} value
 * @param {(value: number) => void} change
 * @param {Record<string, unknown>} [attributes]
 */
function number(label, id, value, change, attributes = { step: 'any' }) {
  return h('label', { class: 'field' }, h('span', {}, label),
    h('input', {
      type: 'number', ...attributes, id, value: () => short(value()),
      onchange: (/** @type {Event} */ event) => {
        const number = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
        if (Number.isFinite(number)) change(number);
      },
    }));
}

/** @param {string} label @param {'mean' | 'std'} key */
function triple(label, key) {
  const one = (/** @type {number} */ index) =>
    h('input', {
      type: 'number', step: 'any', 'aria-label': `${label}, channel ${index + 1}`, id: `${key}-${index}`, value: () => short(image(key)?.[index]),
      onchange: (/** @type {Event} */ event) => {
        const number = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
        const now = [...(image(key) ?? [0, 0, 0])];
        now[index] = number;
        if (Number.isFinite(number)) setImage({ [key]: now });
      },
    });
  return h('div', { class: 'field', role: 'group', 'aria-label': label }, h('span', {}, label), h('span', { class: 'three' }, one(0), one(1), one(2)));
}

/** A single-precision number as a person would type it. @param {number | undefined} value */
function short(value) {
  return value === undefined ? '' : String(Number(value.toPrecision(7)));
}
