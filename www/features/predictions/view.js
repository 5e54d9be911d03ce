// @ts-check
/**
 * Predictions of both models, sample by sample: those that differ come first. Arrow keys turn the
 * pages.
 */

import { neighbours } from '../../answers/vectors.js';
import { h } from '../../library/dom.js';
import { computed, effect, signal } from '../../library/signals.js';
import { figuresOf, namingFor } from './figures.js';
import { countOf, difference, meaning, worstFirst } from './words.js';

/** @import { SampleAnswer, VectorAnswer } from '../../types.js' */

/** @param {SampleAnswer[]} given */
export function view(given) {
  const all = given.every(({ answer }) => answer.type === 'vector') ? withNeighbours(given) : given;
  const ordered = worstFirst(all);
  const differing = ordered.filter(({ answer }) => answer.differs);
  const filter = signal('all');
  const place = signal(0);
  const listed = computed(() => (filter.value === 'differing' ? differing : ordered));
  const now = computed(() => listed.value[Math.min(place.value, listed.value.length - 1)]);
  const turn = (/** @type {number} */ to) => (place.value = Math.max(0, Math.min(listed.peek().length - 1, to)));
  const body = h('div', { class: 'prediction', id: 'prediction' });
  let drawn = 0;
  effect(() => {
    const shown = now.value;
    const mine = ++drawn;
    // The previous sample stays until the next one is drawn.
    void figuresOf(shown, all).then((figures) => mine === drawn && body.replaceChildren(...figures));
  });
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: place.peek() - 1, ArrowRight: place.peek() + 1, Home: 0, End: listed.peek().length - 1 });
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey || event.target instanceof HTMLSelectElement) return;
    event.preventDefault();
    turn(steps[event.key]);
  };
  return [
    h('p', { class: `callout ${differing.length > 0 ? 'fair' : 'good'}`, id: 'predictions-count' }, countOf(all), ' ', h('span', { class: 'note' }, meaning[all[0].answer.type])),
    h('div', { class: 'predictions', role: 'group', tabindex: 0, 'aria-label': 'Predictions, sample by sample; arrow keys turn the pages', 'aria-keyshortcuts': 'ArrowLeft ArrowRight', onkeydown: keys },
      h('div', { class: 'row turn' },
        h('button', { type: 'button', class: 'small', id: 'prediction-before', disabled: () => place.value <= 0, onclick: () => turn(place.peek() - 1) }, 'Previous'),
        h('button', { type: 'button', class: 'small', id: 'prediction-next', disabled: () => place.value >= listed.value.length - 1, onclick: () => turn(place.peek() + 1) }, 'Next'),
        h('span', { class: 'note', id: 'prediction-place' }, () => `${Math.min(place.value, listed.value.length - 1) + 1} of ${listed.value.length}: ${now.value.sample}`),
        differing.length > 0 && differing.length < all.length && h('label', { class: 'filter' }, h('span', { class: 'note' }, 'Show'),
          h('select', { id: 'prediction-filter', onchange: (/** @type {Event} */ event) => { place.value = 0; filter.value = /** @type {HTMLSelectElement} */ (event.target).value; } },
            h('option', { value: 'all' }, `all ${all.length}`), h('option', { value: 'differing' }, `only the ${differing.length} that differ`)))),
      h('p', { id: 'prediction-difference', 'aria-live': 'polite' }, () => said(now.value)),
      body),
  ];
}

/** @param {SampleAnswer} shown */
function said({ answer }) {
  return [h('strong', {}, answer.differs ? 'Differs. ' : 'Same answer. '), difference(answer, namingFor(answer))];
}

/** Answers of vectors differ where another sample is the nearest. @param {SampleAnswer[]} all */
function withNeighbours(all) {
  const vectorsOf = (/** @type {'float' | 'quantized'} */ which) => all.map(({ answer }) => /** @type {VectorAnswer} */ (answer)[which]);
  const [float, quantized] = [vectorsOf('float'), vectorsOf('quantized')];
  return all.map(({ sample, answer }, at) => ({ sample, answer: { ...answer, differs: neighbours(float, quantized, at).differs } }));
}
