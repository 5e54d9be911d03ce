// @ts-check
/** The goals as cards: what each is, and the forecast size. */

import { h } from '../../library/dom.js';
import { bytes } from '../../library/format.js';
import { computed, effect, signal } from '../../library/signals.js';
import { model, modelChanged, run, samples, settings, tab } from '../../state/page.js';
import { forecast } from '../run/state.js';
import { goalOf, goalsOf } from './goals.js';
import { adopt } from './undo.js';

/** @import { Goal, Sizes } from './goals.js' */

const busy = () => run.value !== null && !run.value.quick;

/** The sizes from `goal-sizes.js`, once it is loaded. @type {import('../../library/signals.js').Signal<{ readonly value: Sizes | null } | null>} */
const forecasts = signal(/** @type {any} */ (null));

/** The goals for the open model, with what is known of their sizes. */
export const goals = computed(() => {
  modelChanged.value;
  const card = model.value?.card;
  if (!card) return [];
  const { document } = settings.value;
  const told = forecast.value?.told;
  // The forecast from the first sample is for the current settings, if these are static.
  const calibrated = told && (document.scheme ?? 'static') === 'static' ? told.outputBytes : null;
  return goalsOf(card, { samples: samples.value.refs.length > 0, sizes: forecasts.value?.value ?? null, calibrated });
});

/** True if the settings serve one of the goals. */
export const servesGoal = computed(() => goalOf(goals.value, settings.value.document) !== undefined);

let loading = false;

/** Loads the forecast of sizes with the first model. */
async function loadSizes() {
  if (loading) return;
  loading = true;
  const { keepSizes, sizes } = await import('./goal-sizes.js');
  keepSizes();
  forecasts.value = sizes;
}

export function goalCards() {
  effect(() => {
    if (model.value) void loadSizes();
  });
  return h('div', { class: 'goals', role: 'group', 'aria-label': 'Goal' },
    () => goals.value.map(card),
    () => samples.value.refs.length > 0 && h('button', { type: 'button', class: 'goal', id: 'goal-budget', disabled: busy, onclick: () => (tab.value = 'search') },
      h('strong', {}, 'Within a budget'), h('span', { class: 'note' }, 'of accuracy, bytes or time: a search chooses the bits of each tensor')));
}

/** @param {Goal} goal */
function card({ name, title, what, document, bytes: size }) {
  const chosen = () => goalOf(goals.value, settings.value.document)?.name === name;
  return h('button', { type: 'button', class: 'goal', id: `goal-${name}`, 'aria-pressed': () => String(chosen()), disabled: busy, onclick: () => adopt(document) },
    h('strong', {}, title), size !== null && h('span', { class: 'goal-size' }, `about ${bytes(size)}`), h('span', { class: 'note' }, what));
}
