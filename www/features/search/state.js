// @ts-check
/** The search under a budget: its choices, its outcome, and the point that is looked at. */

import { canonical, inWords } from '../../settings-document.js';
import { computed, effect, signal } from '../../library/signals.js';
import { inBackground } from '../../state/background-task.js';
import { say, sentence } from '../../state/messages.js';
import { model, randomData, run, sampleSettings, samples, settings } from '../../state/page.js';
import { adopt } from '../settings/undo.js';
import { budgets, budgetText } from './budget.js';

/** @import { Bits, SearchOutcome, Settings } from '../../types.js' */
/** @import { Kind } from './budget.js' */

/** @type {import('../../library/signals.js').Signal<Kind>} */
export const kind = signal(/** @type {Kind} */ ('sqnr'));
/** Amount and unit of each kind of budget. */
export const amounts = signal(Object.fromEntries(Object.entries(budgets).map(([name, { amount, units }]) => [name, { amount, unit: Object.keys(units)[0] }])));
/** @type {import('../../library/signals.js').Signal<Bits[]>} */
export const weightBits = signal(/** @type {Bits[]} */ (['4', '8', '16', 'float']));
/** @type {import('../../library/signals.js').Signal<Bits[]>} */
export const activationBits = signal(/** @type {Bits[]} */ (['8', '16', 'float']));
/** True to measure the times of layers. */
export const profile = signal(false);
/** Sensitivities from a file. @type {import('../../library/signals.js').Signal<{ name: string, text: string } | null>} */
export const file = signal(/** @type {any} */ (null));

/**
 * The last search. `base`: the settings that it started from; `reused`: true if it measured nothing.
 *
 * @type {import('../../library/signals.js').Signal<{ found: SearchOutcome, base: Settings, key: string, reused: boolean } | null>}
 */
export const outcome = signal(/** @type {any} */ (null));
/** Index of the point that is looked at. */
export const point = signal(0);
/** Reason why the last search has no result; empty otherwise. */
export const failure = signal('');
/** True while a search is under way. */
export const searching = signal(false);

/** Settings of a point that became those of the page, as text. */
let taken = '';

// An outcome belongs to one model and its samples.
effect(() => {
  void model.value;
  void samples.value;
  outcome.value = null;
  failure.value = '';
  taken = '';
});
effect(() => {
  void model.value;
  file.value = null;
});

/** Reason why no search can start; empty if one can. */
export const blocked = computed(() => {
  if (!model.value) return 'Open a model first.';
  if (model.value.card.alreadyQuantized) return 'This model is already quantized. Open the float model that it was made from.';
  if (samples.value.refs.length < 2) return 'Add at least two samples: one half chooses, the other verifies.';
  if ((settings.value.document.scheme ?? 'static') !== 'static') return `A search chooses integers of the static scheme, but the settings say “${inWords(settings.value.document)}”. Choose the static scheme.`;
  if (run.value) return 'A run is in progress.';
  return '';
});

/** Searches with the samples of the page. */
export async function search() {
  const open = model.peek();
  if (!open || blocked.peek()) return;
  const { files, labels, source } = samples.peek();
  const current = settings.peek().document;
  const before = outcome.peek();
  // A taken point fixes types. The next search starts where the one before started.
  const base = before && canonical(current) === taken ? before.base : current;
  const { amount, unit } = amounts.peek()[kind.peek()];
  const read = sampleSettings();
  const choices = { weightBits: weightBits.peek(), activationBits: activationBits.peek(), profile: profile.peek() || unit === 'ms' };
  const key = canonical({ base, read, choices });
  const given = file.peek()?.text ?? (before?.key === key ? before.found.sensitivities : undefined);
  failure.value = '';
  searching.value = true;
  const numbers = Object.fromEntries([...labels].map(([name, label]) => [name, Number(label)]));
  const error = await inBackground('Searching under the budget', async (gently, onProgress) => {
    const options = { ...choices, budget: budgetText(kind.peek(), amount, unit), sensitivities: given, samples: { ...read, demo: source === randomData }, labels: numbers, settings: base, gently };
    const found = await open.search(files, options, onProgress);
    gently.throwIfAborted();
    outcome.value = { found, base, key: file.peek() ? '' : key, reused: given !== undefined };
    point.value = found.point;
    say(found.answer);
  });
  searching.value = false;
  if (error) fails(error);
}

/** Makes the settings of the point that is looked at those of the page. */
export async function takePoint() {
  const [now, chosen] = [outcome.peek(), await settingsOf(point.peek())];
  if (!now || !chosen) return;
  // These are the keys that a search sets; all others are as they were, or have their defaults.
  const { guard, fine_first: fine, tensors } = chosen;
  const document = { ...now.base, guard, fine_first: fine, tensors };
  taken = canonical(document);
  adopt(document, { now: true });
  say('The settings of this point are taken over.');
}

/**
 * The settings of a point; `null` where they are lost.
 *
 * @param {number} index
 * @returns {Promise<Settings | null>}
 */
export async function settingsOf(index) {
  const [open, now] = [model.peek(), outcome.peek()];
  if (!open || !now) return null;
  if (index === now.found.point) return now.found.settings;
  try {
    return await open.searchSettings(index);
  } catch (error) {
    fails(error);
    return null;
  }
}

/** @param {unknown} error */
function fails(error) {
  failure.value = sentence(error instanceof Error ? error.message : String(error));
  say(failure.value);
}
