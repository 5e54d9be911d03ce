// @ts-check
/**
 * The search under a budget: the budget, the progress in words, then the verdict and the curve of
 * size and error beside its table. The settings of a point become those of the page.
 */

import { h } from '../../library/dom.js';
import { choice } from '../../library/fields.js';
import { pick } from '../../library/file-picker.js';
import { bytes, count, percent } from '../../library/format.js';
import { fact } from '../../library/table.js';
import { stopMeasuring } from '../../state/background-task.js';
import { say } from '../../state/messages.js';
import { measuring } from '../../state/page.js';
import { settingsLocked } from '../../state/surroundings.js';
import { budgets, estimateText, metricNames } from './budget.js';
import { curve, inWords } from './curve.js';
import { pointsTable, tensorsOf } from './points.js';
import { activationBits, amounts, blocked, failure, file, kind, outcome, point, profile, search, searching, takePoint, weightBits } from './state.js';
import { saveSensitivities } from './sensitivities.js';

/** @import { Bits, BudgetVerdict, Chosen, SearchOutcome } from '../../types.js' */
/** @import { Kind } from './budget.js' */

/** Titles and kinds of callouts. @type {Record<BudgetVerdict, [string, 'good' | 'fair' | 'bad']>} */
const verdicts = {
  holds: ['The budget holds', 'good'],
  met: ['The budget is kept', 'good'],
  undecidable: ['Not decidable with so few samples', 'fair'],
  fails: ['The budget does not hold', 'bad'],
};

export function view() {
  return h('section', { class: 'panel', 'aria-labelledby': 'search-title' },
    h('h2', { id: 'search-title' }, 'Search under a budget'),
    h('p', { class: 'note' }, 'The search gives each tensor 4, 8 or 16 bits, or keeps it float, so that the model is small and fast within the budget. One half of the samples calibrates and chooses, the other verifies.'),
    budgetFields(),
    choices(),
    h('div', { class: 'row' },
      // Not `disabled`, so that a screen reader can reach the button and its reason.
      h('button', {
        type: 'button', id: 'search-start', class: 'primary', 'aria-disabled': () => (blocked.value || searching.value ? 'true' : null), 'aria-describedby': 'search-why',
        onclick: () => blocked.peek() || searching.peek() || void search(),
      }, () => (outcome.value ? 'Search again' : 'Search')),
      h('button', { type: 'button', id: 'search-stop', hidden: () => !searching.value, onclick: () => stopMeasuring() && say('The search is stopped; the settings are kept.') }, 'Stop'),
      h('span', { id: 'search-why', class: 'note' }, () => blocked.value || (searching.value ? '' : 'Nothing changes until you take the settings of a point.'))),
    () => searching.value && h('div', { class: 'gap', id: 'search-progress' },
      h('progress', { max: 1, 'aria-labelledby': 'search-stage', value: part }),
      h('p', { id: 'search-stage' }, progress)),
    () => failure.value && h('p', { class: 'callout bad', id: 'search-failure', role: 'alert' }, failure.value),
    () => outcome.value && result(outcome.value.found, outcome.value.reused),
  );
}

function budgetFields() {
  const now = () => amounts.value[kind.value];
  const change = (/** @type {Partial<{ amount: number, unit: string }>} */ part) => (amounts.value = { ...amounts.peek(), [kind.peek()]: { ...amounts.peek()[kind.peek()], ...part } });
  return h('div', { class: 'gap' },
    h('div', { class: 'search-budget' },
      choice('Budget', 'search-kind', () => kind.value, Object.entries(budgets).map(([name, { title }]) => [name, title]), (name) => (kind.value = /** @type {Kind} */ (name))),
      h('label', { class: 'field' }, h('span', {}, 'Amount'),
        h('input', { type: 'number', id: 'search-amount', min: 0, step: () => budgets[kind.value].step, value: () => String(now().amount), onchange: (/** @type {Event} */ event) => {
          const input = /** @type {HTMLInputElement} */ (event.target);
          const amount = Number(input.value);
          if (input.value !== '' && amount >= 0) change({ amount });
          else input.value = String(amounts.peek()[kind.peek()].amount);
        } })),
      choice('Unit', 'search-unit', () => now().unit, () => Object.entries(budgets[kind.value].units), (unit) => change({ unit }))),
    h('p', { class: 'note' }, () => budgets[kind.value].note));
}

function choices() {
  return h('details', { id: 'search-choices' }, h('summary', {}, 'More choices'),
    h('div', { class: 'gap' },
      bits('Bits of weights', 'weight', weightBits),
      bits('Bits of activations', 'activation', activationBits),
      h('label', { class: 'check' },
        h('input', { type: 'checkbox', id: 'search-profile', checked: () => profile.value, onchange: (/** @type {Event} */ event) => (profile.value = /** @type {HTMLInputElement} */ (event.target).checked) }),
        h('span', {}, 'Time the layers in this browser', h('span', { class: 'note' }, 'Otherwise times come from a model of costs. It counts multiplications and values, at rates that were measured for 8 bits, 16 bits and floats.'))),
      h('div', { class: 'row' },
        ...pick('Read sensitivities from a file', { id: 'search-file', accept: '.json' }, ([chosen]) => {
          void chosen.text().then((text) => (file.value = { name: chosen.name, text }));
        }),
        () => file.value && h('button', { type: 'button', class: 'small', id: 'search-no-file', onclick: () => (file.value = null) }, 'Measure anew')),
      h('p', { class: 'note', id: 'search-file-name' }, () => (file.value
        ? `The search takes the sensitivities of ${file.value.name} and measures none.`
        : 'A search saves what it measured to a file. The file can be edited and read again, here and on the command line.'))));
}

/** @param {string} title @param {string} id @param {import('../../library/signals.js').Signal<Bits[]>} chosen */
function bits(title, id, chosen) {
  const tick = (/** @type {Bits} */ one) => h('label', { class: 'check' },
    h('input', { type: 'checkbox', id: `search-${id}-${one}`, disabled: one === '8', checked: () => chosen.value.includes(one), onchange: (/** @type {Event} */ event) => {
      const on = /** @type {HTMLInputElement} */ (event.target).checked;
      chosen.value = /** @type {const} */ (['4', '8', '16', 'float']).filter((other) => (other === one ? on : chosen.peek().includes(other)));
    } }), h('span', {}, one === 'float' ? 'float' : `${one} bits`));
  return h('fieldset', {}, h('legend', {}, title), h('div', { class: 'search-bits' }, ...(/** @type {const} */ (['4', '8', '16', 'float'])).map(tick)));
}

function part() {
  const { done = 0, of = 0 } = measuring.value?.progress ?? {};
  return of > 0 && done > 0 ? String(done / of) : null;
}

function progress() {
  const { stage = 'The search begins', done = 0, of = 0 } = measuring.value?.progress ?? {};
  return of > 1 ? `${stage}: ${count(done)} of ${count(of)}` : stage;
}

/** @param {SearchOutcome} found @param {boolean} reused */
function result(found, reused) {
  const [title, color] = verdicts[found.verdict];
  const [choosing, held] = found.samples;
  const times = found.times === 'model' ? 'Times come from a model of costs of Octet’s engine.' : 'Times are measured in this browser.';
  const wide = found.points[found.point].counts[2] > 0 ? ' On processors ONNX Runtime computes layers with 16-bit activations in float.' : '';
  return h('div', { class: 'stack', id: 'search-result' },
    h('div', { class: `callout ${color}`, id: 'search-verdict', 'data-verdict': found.verdict }, h('h3', {}, title), h('p', { id: 'search-answer' }, found.answer)),
    h('dl', { class: 'facts' },
      ...figures('Chosen', found.chosen, found),
      ...figures('Without a search', found.withoutSearch, found)),
    h('p', { class: 'note' }, `${count(choosing)} samples chose, ${count(held)} verified; intervals hold 95 %. ${times}${wide}${reused ? ' The sensitivities were known and not measured again.' : ''}`),
    h('div', { class: 'search-both' }, curve(found), pointsTable(found)),
    h('p', { id: 'search-words' }, () => `${point.value === found.point ? 'The chosen point' : 'This point'}: ${inWords(found.points[Math.min(point.value, found.points.length - 1)])}.`),
    h('div', { class: 'row' },
      h('button', { type: 'button', id: 'search-take', class: 'primary', disabled: settingsLocked, onclick: () => void takePoint() }, 'Take the settings of this point'),
      h('button', { type: 'button', id: 'search-back', hidden: () => point.value === found.point, onclick: () => (point.value = found.point) }, 'Back to the chosen point'),
      h('button', { type: 'button', id: 'search-save', onclick: () => saveSensitivities(found) }, 'Save the sensitivities')),
    tensorsOf(found),
  );
}

/** @param {string} name @param {Chosen} one @param {SearchOutcome} found */
function figures(name, one, found) {
  const rows = [
    [`${name}: size`, bytes(one.bytes)],
    [`${name}: time`, `${percent(one.shareOfTime)} of the float model’s`],
    [`${name}: ${metricNames[found.metric].toLowerCase()}`, estimateText(found.metric, one.heldError)],
  ];
  if (found.metric !== 'sqnr') rows.push([`${name}: signal over noise`, `${one.heldSqnr.toFixed(1)} dB`]);
  return rows.flatMap(([term, value]) => fact(term, value));
}
