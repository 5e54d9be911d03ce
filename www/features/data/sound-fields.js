// @ts-check
/** The field for the rate of sound, and the waveform of the first sample. */

import { h } from '../../library/dom.js';
import { isSound } from '../../files.js';
import { model, modelChanged, run, samples, settings } from '../../state/page.js';
import { setRate } from './samples.js';

/** Width and height of the picture of a waveform. */
const [width, height] = [480, 96];

/** The rate of sound, with the reason for the proposed one. */
export function soundFields() {
  const form = () => (modelChanged.value, model.value?.card.audio ?? null);
  return h('fieldset', { disabled: () => run.value !== null, hidden: () => !form() || !samples.value.files.some(isSound), id: 'sound-settings' },
    h('legend', {}, 'Sound'),
    h('label', { class: 'field' }, h('span', {}, 'Values a second'),
      h('input', {
        type: 'number', id: 'sample-rate', min: 1000, max: 384_000, step: 1, 'aria-describedby': 'sample-rate-why', value: () => String(settings.value.rate ?? form()?.rate ?? ''),
        onchange: (/** @type {Event} */ event) => {
          const rate = Math.round(/** @type {HTMLInputElement} */ (event.target).valueAsNumber);
          if (rate >= 1000 && rate <= 384_000) setRate(rate);
        },
      })),
    h('p', { class: 'note', id: 'sample-rate-why' }, () => {
      const { rate, why, certainty, length } = form() ?? { rate: 0, why: '', certainty: '', length: null };
      const cut = length === null ? '' : ` Recordings are cut or padded to ${length} values.`;
      return `Proposed: ${rate}, because ${why}${certainty === 'guess' ? ' (a guess: check it)' : ''}. Channels are mixed to one.${cut}`;
    }));
}

/**
 * The waveform as a picture: the least and the largest value at each place.
 *
 * @param {Float32Array} values
 */
export function waveform(values) {
  const canvas = h('canvas', { width, height, class: 'waveform', role: 'img', 'aria-label': `The waveform of the first sample, ${values.length} values` });
  const context = canvas.getContext('2d');
  if (!context) return null;
  context.strokeStyle = getComputedStyle(document.body).color;
  const most = values.reduce((all, value) => Math.max(all, Math.abs(value)), 1e-9);
  context.beginPath();
  for (let x = 0; x < width; x += 1) {
    const part = values.subarray(Math.floor((x * values.length) / width), Math.max(Math.floor(((x + 1) * values.length) / width), Math.floor((x * values.length) / width) + 1));
    const [low, high] = part.reduce(([least, largest], value) => [Math.min(least, value), Math.max(largest, value)], [Infinity, -Infinity]);
    const at = (/** @type {number} */ value) => height / 2 - (value / most) * (height / 2 - 2);
    context.moveTo(x + 0.5, at(low) + 0.5);
    context.lineTo(x + 0.5, at(high) - 0.5);
  }
  context.stroke();
  return canvas;
}
