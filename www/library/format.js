// @ts-check
/**
 * Formatting of numbers. Sizes are decimal, as in a download: 1 MB is a million bytes, for memory
 * too.
 */

/** @param {number | undefined} count @returns {string} 18.8 MB */
export function bytes(count) {
  if (count === undefined) return '–';
  if (count < 1000) return `${count} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = count / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** @param {number} value @returns {string} 4 652 008, as the person's language groups it */
export function count(value) {
  return value.toLocaleString();
}

/** @param {number} value @param {string} one @param {string} [many] @returns {string} 1 sample, 16 samples */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** @param {number} milliseconds @returns {string} 3.2 s, 2 min 5 s */
export function duration(milliseconds) {
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** @param {number} value @returns {string} 0.123 ms, 4.56 ms, 12.3 ms: what was measured, where fractions count */
export function milliseconds(value) {
  return `${value.toFixed(value < 1 ? 3 : value < 10 ? 2 : 1)} ms`;
}

/** @param {number} part @returns {string} 95.0 %, 100 % */
export function percent(part) {
  return `${(part * 100).toFixed(part === 1 ? 0 : 1)} %`;
}

/** @param {number} milliseconds @returns {string} an estimate, rounded to what it is worth */
export function timeLeft(milliseconds) {
  const seconds = Math.max(1, Math.round(milliseconds / 1000));
  if (seconds < 60) return `about ${seconds} s left`;
  return `about ${Math.round(seconds / 60)} min left`;
}

/** @param {number} value @returns {string} four significant digits, short */
export function real(value) {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}
