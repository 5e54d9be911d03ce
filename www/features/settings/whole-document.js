// @ts-check
/** A settings document from outside, with the preprocessing of images if it has one. */

import { parse, YamlError } from '../../library/yaml.js';
import { chosenOf } from '../data/image-settings.js';
import { setPreprocessing } from '../data/samples.js';

/** @import { Settings } from '../../types.js' */

/**
 * Reads a document in YAML or JSON.
 *
 * @param {string} text
 * @returns {{ document: Settings, images: Record<string, any> | null }}
 */
export function readDocument(text) {
  const whole = parse(text);
  if (whole === null || typeof whole !== 'object' || Array.isArray(whole)) throw new YamlError(1, 'the document must be `key: value` lines');
  const { images = null, ...document } = /** @type {any} */ (whole);
  if (images !== null && (typeof images !== 'object' || Array.isArray(images))) throw new YamlError(1, '`images` must be keys with values');
  return { document, images };
}

/** Takes the preprocessing of a document as a choice of the person. @param {Record<string, any> | null} images */
export function applyImages(images) {
  if (images) setPreprocessing(chosenOf(images));
}
