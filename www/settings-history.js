// @ts-check
/**
 * Changing the settings document: at once where a result is there and its ranges do, with the way back and forth. Where the samples
 * have to run again, the page says so and offers the button.
 */

import { canonical, needsSamples, put } from './settings-document.js';
import { say } from './messages.js';
import { held, quantize, show, stale } from './run.js';
import { batch, effect } from './signals.js';
import { blocked, done, redoable, run, settings, undoable } from './state.js';

/** @import { Settings } from './types.js' */
/** @import { Path } from './settings-document.js' */

/** How many steps back are kept. */
const steps = 100;
/** Who is still choosing is not interrupted, in milliseconds. */
const pause = 350;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** Whether something was changed while a run was under way. */
let waiting = false;

/**
 * Takes another document. Where a result is there and its ranges are held, it is made anew: that takes no calibration.
 *
 * @param {Settings} document
 * @param {{ now?: boolean }} [how] `now`: without waiting for more changes
 */
export function adopt(document, { now = false } = {}) {
  const before = settings.peek().document;
  if (canonical(before) === canonical(document)) return;
  batch(() => {
    undoable.value = [...undoable.peek(), before].slice(-steps);
    redoable.value = [];
    settings.value = { ...settings.peek(), document };
  });
  soon(now ? 0 : pause);
}

/** Says one thing in the document, or takes it back. @param {Path} path @param {unknown} value @param {{ now?: boolean }} [how] */
export function change(path, value, how) {
  adopt(put(settings.peek().document, path, value), how);
}

/** Goes back to the document before this one, and to its result. */
export const undo = () => step(undoable, redoable, 'Undone.');

/** Goes forth again to what was undone last. */
export const redo = () => step(redoable, undoable, 'Redone.');

/** @param {typeof undoable} from @param {typeof undoable} to @param {string} said */
function step(from, to, said) {
  const document = from.peek().at(-1);
  if (!document || (run.peek() && !run.peek()?.quick)) return;
  batch(() => {
    from.value = from.peek().slice(0, -1);
    to.value = [...to.peek(), settings.peek().document].slice(-steps);
    settings.value = { ...settings.peek(), document };
  });
  say(said);
  soon(0);
}

/** @param {number} ms */
function soon(ms) {
  clearTimeout(timer);
  if (ms === 0) again();
  else timer = setTimeout(again, ms);
}

/** A changed document has its result at once, from what was made before or from the ranges that are held; else it waits for the button. */
function again() {
  clearTimeout(timer);
  timer = undefined;
  if (run.peek()) {
    waiting = true;
    return;
  }
  const { document } = settings.peek();
  if (!done.peek() || !stale() || show(document) || blocked.peek()) return;
  if (!needsSamples(document) || held(document, true)) void quantize({ quick: true });
}

effect(() => {
  if (run.value || !waiting) return;
  waiting = false;
  soon(pause);
});

/** Whether the settings of now need the samples to run again before there is a result of them. */
export const wantsRun = () => stale() && needsSamples(settings.value.document) && !held(settings.value.document, true);

/**
 * Ctrl+Z, and Ctrl+Shift+Z or Ctrl+Y; nothing in a field, which has an undo of its own.
 *
 * @param {KeyboardEvent} event
 */
export function undoByKeys(event) {
  const key = event.key.toLowerCase();
  if (event.defaultPrevented || event.altKey || !(event.ctrlKey || event.metaKey) || !['z', 'y'].includes(key)) return;
  if (event.target instanceof Element && event.target.closest('input:not([type=checkbox], [type=radio]), textarea, [contenteditable]')) return;
  event.preventDefault();
  if (key === 'y' || event.shiftKey) redo();
  else undo();
}
