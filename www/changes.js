// @ts-check
/** Changing the settings document: at once where a result is there, with the way back, and a list of what came of it. */

import { canonical, put } from './document.js';
import { say } from './messages.js';
import { quantize } from './run.js';
import { batch } from './signals.js';
import { blocked, done, model, run, settings, undoable } from './state.js';

/** @import { QuantizeSettings } from './types.js' */
/** @import { Path } from './document.js' */

/** How many steps back are kept. */
const steps = 100;

/**
 * Takes another document. Where a result is there and its ranges are held, it is made anew at once: that takes no calibration.
 *
 * @param {QuantizeSettings} document
 * @param {{ now?: boolean }} [how] `now`: requantize at once; else the person presses the button
 */
export function adopt(document, { now = false } = {}) {
  const before = settings.peek().document;
  if (canonical(before) === canonical(document)) return;
  batch(() => {
    undoable.value = [...undoable.peek(), before].slice(-steps);
    settings.value = { ...settings.peek(), document };
  });
  if (now) again();
}

/** Says one thing in the document, or takes it back. @param {Path} path @param {unknown} value @param {{ now?: boolean }} [how] */
export function change(path, value, how) {
  adopt(put(settings.peek().document, path, value), how);
}

/** Goes back to the document before this one, and to its result. */
export function undo() {
  const before = undoable.peek().at(-1);
  if (!before) return;
  batch(() => {
    undoable.value = undoable.peek().slice(0, -1);
    settings.value = { ...settings.peek(), document: before };
  });
  say('Undone.');
  again();
}

/** A changed document makes another result of the ranges that are held; without these it waits for the button. */
function again() {
  const shown = done.peek();
  if (!shown || run.peek() || blocked.peek()) return;
  if (canonical(shown.document) === canonical(settings.peek().document)) return;
  if (shown.calibration && !model.peek()?.calibrated) return;
  void quantize({ quick: true });
}
