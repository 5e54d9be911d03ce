// @ts-check
/** Colours of classes: neighbouring numbers are far from each other on the colour wheel. */

/** The golden angle in degrees. @param {number} number */
export const hueOf = (number) => (number * 137.508 + 40) % 360;

/**
 * Red, green and blue of a class, from 0 to 255, of full saturation.
 *
 * @param {number} number
 * @returns {[number, number, number]}
 */
export function colourOf(number) {
  const hue = hueOf(number) / 60;
  const part = (/** @type {number} */ shift) => 255 * Math.min(Math.max(Math.abs(((hue + shift) % 6) - 3) - 1, 0), 1);
  return [part(0), part(4), part(2)];
}
