// @ts-check
/** Fields for texts: what of a file is a text, how many there are, and where they are cut. */

import { h } from '../../library/dom.js';
import { choice } from '../../library/fields.js';
import { model, run, samples, textSettings } from '../../state/page.js';
import { addSamples } from './samples.js';
import { hasTexts } from './texts.js';

/** @import { TextSettings, TokenPreview } from '../../types.js' */

const busy = () => run.value !== null;

/** @param {TextSettings} change */
function set(change) {
  textSettings.value = { ...textSettings.peek(), ...change };
  void addSamples([], undefined, { texts: true });
}

/** @param {string} label @param {string} id @param {() => string} value @param {(text: string) => void} then @param {Record<string, unknown>} [more] */
const field = (label, id, value, then, more = {}) => h('label', { class: 'field' }, h('span', {}, label), h('input', { id, value, onchange: (/** @type {Event} */ event) => then(/** @type {HTMLInputElement} */ (event.target).value.trim()), ...more }));

const number = { type: 'number', min: 1, step: 1, inputmode: 'numeric' };
const whole = (/** @type {string} */ text) => (/^[1-9]\d*$/.test(text) ? Number(text) : undefined);

/** The settings of texts, shown beside the first one. */
export function textFields() {
  return h('fieldset', { disabled: busy, hidden: () => !hasTexts(samples.value.textFiles) || model.value?.card.rows === true, id: 'text-settings' },
    h('legend', {}, 'Texts'),
    field('Field or column', 'text-field', () => textSettings.value.fields?.join(', ') ?? '', (text) => set({ fields: text.split(',').map((name) => name.trim()).filter(Boolean) }), { placeholder: 'text; two make pairs' }),
    choice('A text is', 'text-unit', () => textSettings.value.unit ?? 'lines', [['lines', 'a line'], ['paragraphs', 'a paragraph']], (unit) => set({ unit: /** @type {TextSettings['unit']} */ (unit) })),
    field('Largest number of tokens', 'text-length', () => String(textSettings.value.maxLength ?? ''), (text) => set({ maxLength: whole(text) }), { ...number, placeholder: 'the model’s' }),
    field('Texts of a file', 'text-count', () => String(textSettings.value.count ?? 100), (text) => set({ count: whole(text) ?? 100 }), number),
  );
}

/** The tokens of a text with their numbers, as the model receives them. @param {TokenPreview[]} tokens */
export const tokenList = (tokens) => h('ol', { class: 'tokens', tabindex: 0, role: 'list', 'aria-label': 'Tokens of the first text' }, ...tokens.map(({ token, id, typeId, attended }) => h('li', { class: `${attended ? '' : 'padding'}${typeId > 0 ? ' second' : ''}` },
  h('span', {}, attended ? token : 'padding'), h('span', { class: 'note' }, String(id)))));
