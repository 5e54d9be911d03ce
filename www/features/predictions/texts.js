// @ts-check
/** Texts of samples for people, from their files of tokens. */

import { filesOf } from './picture.js';
import { textOf } from './words.js';

/** Letters of a text that are shown. */
const most = 160;

/** The beginning of a sample's text, or its name. @param {string} sample @returns {Promise<string>} */
export async function captionOf(sample) {
  const file = filesOf(sample).find(({ path }) => path.endsWith('.tokens'));
  if (!file) return sample;
  try {
    const { tokens = [] } = JSON.parse(await file.blob.text());
    const text = textOf(tokens);
    return text === '' ? sample : text.length > most ? `${text.slice(0, most)}…` : text;
  } catch {
    return sample; // the engine has refused it already
  }
}
