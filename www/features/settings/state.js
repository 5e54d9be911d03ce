// @ts-check
/** The steps of undo and redo. They start anew with each model. */

import { effect, signal } from '../../library/signals.js';
import { model } from '../../state/page.js';

/** @import { Settings } from '../../types.js' */

/**
 * Earlier documents for undo, the newest last.
 *
 * @type {import('../../library/signals.js').Signal<Settings[]>}
 */
export const undoable = signal(/** @type {Settings[]} */ ([]));
/**
 * Undone documents for redo, the last undone last.
 *
 * @type {import('../../library/signals.js').Signal<Settings[]>}
 */
export const redoable = signal(/** @type {Settings[]} */ ([]));

effect(() => {
  void model.value;
  undoable.value = [];
  redoable.value = [];
});
