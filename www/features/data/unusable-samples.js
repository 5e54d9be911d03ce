// @ts-check
/** Unusable samples with reasons and fixes, and the samples that were left out. */

import { h } from '../../library/dom.js';
import { count, plural } from '../../library/format.js';
import { run, samples } from '../../state/page.js';
import { hasPictures, proposal } from './image-settings.js';
import { skip } from './sample-check.js';
import { useAgain } from './samples.js';
import { unusable } from './state.js';

/** @import { Skipped } from '../../types.js' */

/** Number of listed samples; the others are counted. */
const shown = 50;
const busy = () => run.value !== null;

/** The unusable samples that are still in use. */
export function unusableList() {
  const bad = unusable.value;
  if (bad.length === 0) return null;
  const all = bad.length === samples.value.refs.length;
  const sized = bad.some((one) => one.asksForSize) && hasPictures.value;
  return h('div', { class: 'callout bad gap', id: 'unusable' },
    h('p', {}, h('strong', {}, all ? (bad.length === 1 ? 'This sample can’t be used' : `None of the ${count(bad.length)} samples can be used`) : `${count(bad.length)} of ${plural(samples.value.refs.length, 'sample')} can’t be used`), ' with the current preprocessing',
      all ? '.' : '. The run leaves them out and reports it.'),
    h('ul', { class: 'unusable', tabindex: 0, role: 'list', 'aria-label': 'Samples that can’t be used' }, ...bad.slice(0, shown).map((one) => h('li', {},
      h('span', {}, h('strong', {}, one.sample), `: ${one.reason}`),
      h('button', { type: 'button', class: 'small', 'aria-label': `Skip this one: ${one.sample}`, disabled: busy, onclick: () => skip([one]) }, 'Skip this one')))),
    bad.length > shown && h('p', { class: 'note' }, `and ${count(bad.length - shown)} more`),
    h('div', { class: 'row' },
      sized && h('button', { type: 'button', class: 'small', id: 'choose-size', disabled: busy, onclick: chooseSize }, 'Change the preprocessing'),
      !all && bad.length > 1 && h('button', { type: 'button', class: 'small', id: 'skip-all', disabled: busy, onclick: () => skip(bad) }, `Skip all ${count(bad.length)}`)));
}

/** Moves to the field that fixes the size. */
function chooseSize() {
  const field = document.getElementById(proposal.peek()?.open && !/** @type {HTMLInputElement | null} */ (document.getElementById('image-height'))?.disabled ? 'image-height' : 'resize');
  field?.scrollIntoView({ block: 'center' });
  field?.focus();
}

/** The samples that were left out, with buttons to restore them. */
export function skippedList() {
  const { skipped } = samples.value;
  if (skipped.length === 0) return null;
  return h('details', { id: 'skipped' },
    h('summary', {}, `${plural(skipped.length, 'sample')} left out`),
    h('ul', { class: 'unusable' }, ...skipped.slice(0, shown).map((one) => h('li', {},
      h('span', {}, h('strong', {}, one.sample), `: ${one.reason}`),
      h('button', { type: 'button', class: 'small', 'aria-label': `Use again: ${one.sample}`, disabled: busy, onclick: () => void useAgain([one]) }, 'Use again')))),
    skipped.length > 1 && h('button', { type: 'button', class: 'small', disabled: busy, onclick: () => void useAgain(skipped) }, 'Use all again'));
}

/** The samples that a run left out, for its result. @param {Skipped[]} skipped */
export function leftOut(skipped) {
  return skipped.length > 0 && h('details', { class: 'callout fair', id: 'left-out' },
    h('summary', {}, `${plural(skipped.length, 'sample')} could not be run and ${skipped.length === 1 ? 'was' : 'were'} left out`),
    h('ul', {}, ...skipped.slice(0, shown).map((one) => h('li', {}, h('strong', {}, one.sample), `: ${one.reason}`))),
    skipped.length > shown && h('p', { class: 'note' }, `and ${count(skipped.length - shown)} more, listed in the report`));
}
