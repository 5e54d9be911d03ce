// @ts-check
/**
 * Controls that change one layer, for the table and the inspector. Their attributes say all that
 * their listeners use, so that the table may keep those that look the same.
 */

import { methods } from '../../methods.js';
import { get } from '../../settings-document.js';
import { h } from '../../library/dom.js';
import { run, settings } from '../../state/page.js';
import { readOnly } from '../../state/surroundings.js';
import { change } from '../settings/undo.js';
import { wideType } from './rows.js';

/** @import { Row } from './rows.js' */

const busy = () => readOnly.value || (run.peek() !== null && !run.peek()?.quick);
const isStatic = () => (settings.peek().document.scheme ?? 'static') === 'static';
const now = { now: true };

/** @param {Row} row */
export function keepFloat(row) {
  const path = ['by_node', row.name, 'float'];
  const kept = get(settings.peek().document, path) === true;
  return h('button', {
    type: 'button', class: 'small', 'data-key': `float ${row.name}`, 'aria-pressed': String(kept), 'aria-label': `Keep ${row.name} float`,
    disabled: busy() || (!kept && row.state === 'float'),
    onclick: (/** @type {Event} */ event) => (event.stopPropagation(), change(path, kept ? undefined : true, now)),
  }, 'Float');
}

/** @param {Row} row */
export function sixteenBits(row) {
  const path = ['by_node', row.name, 'activations', 'type'];
  const wide = /16/.test(get(settings.peek().document, path) ?? '');
  return h('button', {
    type: 'button', class: 'small', 'data-key': `wide ${row.name}`, 'data-type': wideType(row), 'aria-pressed': String(wide), 'aria-label': `16 bits for ${row.name}`,
    disabled: busy() || !isStatic() || (!wide && (row.state === 'float' || /16/.test(row.tensor?.element ?? ''))),
    onclick: (/** @type {Event} */ event) => (event.stopPropagation(), change(path, wide ? undefined : wideType(row), now)),
  }, '16 bits');
}

/** Integer types for a layer, a tensor or the weights of a layer. @type {[string, string][]} */
const types = [['u8', 'uint8'], ['i8', 'int8'], ['u16', 'uint16'], ['i16', 'int16']];

/**
 * Type menus for the inspector: of the layer's outputs, of this tensor alone, of its weights.
 *
 * @param {Row} row
 */
export function typeChoices(row) {
  const { scheme = 'static' } = settings.peek().document;
  if (scheme !== 'static') return null;
  const choice = (/** @type {string} */ label, /** @type {string} */ id, /** @type {string[]} */ path) => h('label', { class: 'field' }, h('span', {}, label),
    h('select', { id, 'data-key': `${id} ${row.name}`, disabled: busy() || (row.state === 'float' && !get(settings.peek().document, path)), value: get(settings.peek().document, path) ?? '',
      onchange: (/** @type {Event} */ event) => change(path, /** @type {HTMLSelectElement} */ (event.target).value || undefined, now) },
      h('option', { value: '' }, 'default'), ...types.map(([key, text]) => h('option', { value: key }, text))));
  return h('div', { class: 'three types' },
    choice('Layer type', 'type-layer', ['by_node', row.name, 'activations', 'type']),
    choice('Tensor type', 'type-tensor', ['tensors', row.output, 'type']),
    row.weightName ? choice('Weight type', 'type-weights', ['by_node', row.name, 'weights', 'type']) : null,
  );
}

/** @param {Row} row */
export function methodChoice(row) {
  const path = ['tensors', row.output, 'method'];
  const own = get(settings.peek().document, path) ?? '';
  const values = methods.map(([value]) => value);
  const known = own === '' || values.includes(own) ? values : [...values, own];
  return h('select', {
    class: 'small', 'data-key': `method ${row.name}`, 'data-tensor': row.output, 'aria-label': `Range method of ${row.name}`, disabled: busy() || !isStatic() || row.tensor?.kind !== 'activation', value: own,
    onclick: (/** @type {Event} */ event) => event.stopPropagation(),
    onchange: (/** @type {Event} */ event) => change(path, /** @type {HTMLSelectElement} */ (event.target).value || undefined, now),
  }, h('option', { value: '' }, 'default'), ...known.map((method) => h('option', { value: method, selected: method === own }, method)));
}
