// @ts-check
/** Messages of the page: problems with advice, and lines for screen readers. */

import { OctetError } from '../octet.js';
import { signal } from '../library/signals.js';

/** @typedef {{ title: string, message: string, next: string, retry?: () => void }} Problem */

/** @type {import('../library/signals.js').Signal<Problem | null>} */
export const problem = signal(/** @type {any} */ (null));
/** The last message for screen readers. */
export const spoken = signal('');
/**
 * All messages, the newest last.
 *
 * @type {import('../library/signals.js').Signal<{ at: number, text: string }[]>}
 */
export const log = signal(/** @type {{ at: number, text: string }[]} */ ([]));
/** The number of messages that are kept. */
const lines = 200;

/** @param {string} title @param {unknown} error @param {string} next @param {() => void} [retry] */
export function fail(title, error, next, retry) {
  if (aborted(error)) return say('Cancelled.');
  const crash = error instanceof OctetError && error.kind === 'crash';
  const message = error instanceof Error ? error.message : String(error);
  problem.value = {
    title,
    message: sentence(crash ? `The engine stopped unexpectedly (${message})` : message),
    next: crash ? `${next} The engine restarts by itself. One thread needs less memory.` : next,
    retry: crash ? retry : undefined,
  };
  say(`${title}. ${message}`);
}

/**
 * Capitalizes the text, unless it begins with a name, and ends it with a period.
 *
 * @param {string} text
 */
export function sentence(text) {
  const start = /^[a-z]+ /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(start) ? start : `${start}.`;
}

/** @param {unknown} error */
export function aborted(error) {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** @param {string} text */
export function say(text) {
  spoken.value = text;
  log.value = [...log.peek(), { at: Date.now(), text }].slice(-lines);
}
