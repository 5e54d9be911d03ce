// @ts-check
/** Numbers of the chart: the marks of its axes, and the steps of keys. Without elements. */

/** Points that Page Up and Page Down pass. */
const page = 10;

/**
 * The index to move to by a key; `null` for other keys.
 *
 * @param {string} key
 * @param {number} now
 * @param {number} last
 */
export function moved(key, now, last) {
  const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -page, PageUp: page });
  if (key === 'Home') return 0;
  if (key === 'End') return last;
  return key in steps ? Math.min(last, Math.max(0, now + steps[key])) : null;
}

/**
 * Round numbers between two, six at most.
 *
 * @param {number} from
 * @param {number} to
 */
export function ticks(from, to) {
  const power = 10 ** Math.floor(Math.log10((to - from) / 6 || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => (to - from) / size <= 6) ?? 10 * power;
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, index) => (first + index) * step);
}
