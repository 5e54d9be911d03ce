// @ts-check
/**
 * Image preprocessing: the proposal for the model, the user's changes, and both in the form of the
 * settings document.
 */

import { isPicture } from '../../files.js';
import { computed } from '../../library/signals.js';
import { model, modelChanged, presets, samples, settings } from '../../state/page.js';
import { valueKeys } from './preprocessings.js';
import { usesSamples } from './state.js';

/** @import { Proposal, Settings } from '../../types.js' */

/** Keys with another name in the document. @type {Record<string, string>} */
const written = { shorterSide: 'shorter_side' };

export const hasPictures = computed(() => samples.value.files.some(isPicture));

/**
 * The proposal for the open model; `null` if its samples can't be images.
 *
 * @returns {Proposal | null}
 */
export const proposal = computed(() => {
  modelChanged.value;
  return model.value?.card.pictures ?? null;
});

const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

/**
 * A proposal in the page's form: a preset, and the differences from it.
 *
 * @param {Proposal} proposed
 */
export function asChosen({ preset, image }) {
  const usual = presets.peek()[preset] ?? {};
  return { preset, image: Object.fromEntries(Object.entries(image).filter(([key, value]) => !same(value, usual[key]))) };
}

/** True if all settings are as proposed. */
export const asProposed = computed(() => {
  const proposed = proposal.value;
  if (!proposed) return true;
  const { preset, image } = settings.value;
  const now = { ...presets.value[preset], ...image };
  return Object.entries(proposed.image).every(([key, value]) => same(value, now[key]));
});

/**
 * The user's changes that survive another preset: all but the value settings.
 *
 * @param {Record<string, any>} image
 */
export function withoutValues(image) {
  return Object.fromEntries(Object.entries(image).filter(([key]) => !valueKeys.includes(key)));
}

/**
 * The settings as a document, with `images` if there are image samples.
 *
 * @returns {Record<string, any>}
 */
export function wholeDocument() {
  const { document, preset, image } = settings.value;
  if (!hasPictures.value) return document;
  const entries = Object.entries(image).filter(([, value]) => value !== undefined && value !== null);
  return { ...document, images: { preset, ...Object.fromEntries(entries.map(([key, value]) => [written[key] ?? key, value])) } };
}

/** A document's `images` in the page's form. @param {Record<string, any>} images */
export function chosenOf(images) {
  const { preset = settings.peek().preset, ...entries } = images;
  const ours = Object.fromEntries(Object.entries(written).map(([key, inDocument]) => [inDocument, key]));
  return { preset, image: Object.fromEntries(Object.entries(entries).map(([key, value]) => [ours[key] ?? key, value])) };
}

/**
 * The complete preprocessing as a document's `images`, so that no proposal fills a gap. Empty
 * without image samples.
 *
 * @param {Settings} document
 */
export function explicitImagesOf(document) {
  const { preset, image } = settings.value;
  if (!hasPictures.value || !usesSamples(document)) return {};
  const entries = Object.entries({ ...presets.value[preset], ...image }).filter(([, value]) => value !== undefined && value !== null);
  return { images: Object.fromEntries(entries.map(([key, value]) => [written[key] ?? key, short(value)])) };
}

/** Numbers without the digits beyond single precision. @param {any} value @returns {any} */
const short = (value) => (Array.isArray(value) ? value.map(short) : typeof value === 'number' ? single(value) : value);

/** A single-precision number with the fewest digits that identify it. @param {number} value */
function single(value) {
  for (let digits = 1; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}
