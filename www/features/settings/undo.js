// @ts-check
/**
 * Changes of the settings document, with undo and redo. If a result exists and its calibration
 * serves the change, a new result is made at once. Otherwise the page offers the button.
 */

import { canonical, put } from '../../settings-document.js';
import { batch, effect } from '../../library/signals.js';
import { say } from '../../state/messages.js';
import { done, run, settings } from '../../state/page.js';
import { readOnly } from '../../state/surroundings.js';
import { usesSamples } from '../data/state.js';
import { calibrationServes, quantize, show, stale } from '../run/run.js';
import { blocked } from '../run/state.js';
import { redoable, undoable } from './state.js';

/** @import { Settings } from '../../types.js' */
/** @import { Path } from '../../settings-document.js' */

/** The number of undo steps. */
const steps = 100;
/**
 * Pause in milliseconds after a change before quantizing, so that further changes are not
 * interrupted.
 */
const pause = 350;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** True if settings changed during a run. */
let waiting = false;

/**
 * Replaces the document. If the calibration of the current result serves it, a new result is made
 * at once.
 *
 * @param {Settings} document
 * @param {{ now?: boolean, byOwner?: boolean }} [how] `now`: without waiting for more changes; `byOwner`: a read-only studio takes it, too
 */
export function adopt(document, { now = false, byOwner = false } = {}) {
  if (readOnly.peek() && !byOwner) return say('The settings of this studio cannot be changed here.');
  const before = settings.peek().document;
  if (canonical(before) === canonical(document)) return;
  batch(() => {
    undoable.value = [...undoable.peek(), before].slice(-steps);
    redoable.value = [];
    settings.value = { ...settings.peek(), document };
  });
  soon(now ? 0 : pause);
}

/**
 * Sets or removes one key of the document.
 *
 * @param {Path} path
 * @param {unknown} value
 * @param {{ now?: boolean }} [how]
 */
export function change(path, value, how) {
  adopt(put(settings.peek().document, path, value), how);
}

/** Restores the previous document and its result. */
export const undo = () => step(undoable, redoable, 'Undone.');

/** Restores the document that was undone last. */
export const redo = () => step(redoable, undoable, 'Redone.');

/** @param {typeof undoable} from @param {typeof undoable} to @param {string} said */
function step(from, to, said) {
  const document = from.peek().at(-1);
  if (!document || readOnly.peek() || (run.peek() && !run.peek()?.quick)) return;
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

/**
 * Shows the result of a changed document at once: from the cache, or from the calibration.
 * Otherwise the button is needed.
 */
function again() {
  clearTimeout(timer);
  timer = undefined;
  if (run.peek()) {
    waiting = true;
    return;
  }
  const { document } = settings.peek();
  if (!done.peek() || !stale() || show(document) || blocked.peek()) return;
  if (!usesSamples(document) || calibrationServes(document, true)) void quantize({ quick: true });
}

effect(() => {
  if (run.value || !waiting) return;
  waiting = false;
  soon(pause);
});

/** True if the current settings need a new calibration. */
export const wantsRun = () => stale() && usesSamples(settings.value.document) && !calibrationServes(settings.value.document, true);

/**
 * Ctrl+Z, and Ctrl+Shift+Z or Ctrl+Y. Text fields keep their own undo.
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
