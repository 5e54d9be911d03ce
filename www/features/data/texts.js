// @ts-check
/** Texts as samples: they wait for the tokenizer of the model, which makes a sample of each. */

import { baseName, isText } from '../../files.js';
import { model, textSettings } from '../../state/page.js';

/** @import { NamedFile } from '../../types.js' */
/** @import { Octet } from '../../octet.js' */

/** True if the files hold texts. @param {NamedFile[]} files */
export const hasTexts = (files) => files.some(isText);

/**
 * Tokenizes texts.
 *
 * @param {Octet} octet
 * @param {NamedFile[]} files texts and tokenizer, as far as they are here
 * @returns {Promise<{ files: NamedFile[], notes: string[] }>} a file for each text, and sentences for people
 */
export async function tokenized(octet, files) {
  const texts = files.filter(isText);
  const tokenizer = files.filter((file) => !isText(file));
  if (texts.length === 0) return { files: [], notes: tokenizer.length > 0 ? ['The tokenizer is here: add texts (.txt, .jsonl or .csv).'] : [] };
  if (!tokenizer.some(({ path }) => baseName(path) === 'tokenizer.json')) {
    return { files: [], notes: [`${texts.map(({ path }) => path).join(', ')}: texts need the tokenizer.json of the model: add it.`] };
  }
  return octet.tokenize(texts, tokenizer, textSettings.peek(), model.peek()?.card.texts?.length ?? null);
}
