// @ts-check
/** State of the measurements of a result. It starts anew with each model. */

import { effect, signal } from '../../library/signals.js';
import { model } from '../../state/page.js';

/**
 * Reasons why the error or the time of a result could not be measured.
 *
 * @type {import('../../library/signals.js').Signal<{ id: number, error: string, time: string }>}
 */
export const unmeasured = signal({ id: 0, error: '', time: '' });
/** The headline output; empty selects the worst. */
export const chosenOutput = signal('');

effect(() => {
  void model.value;
  chosenOutput.value = '';
  unmeasured.value = { id: 0, error: '', time: '' };
});
