// @ts-check
/**
 * Texts and tables as samples. Texts wait for the tokenizer of the model, which makes a sample of
 * each; a table gives a sample for each row.
 */

import { baseName, isTable, isText } from '../../files.js';
import { model, textSettings } from '../../state/page.js';

/** @import { NamedFile } from '../../types.js' */
/** @import { Model, Octet } from '../../octet.js' */

/** True if the files hold texts. @param {NamedFile[]} files */
export const hasTexts = (files) => files.some(isText);

/**
 * Splits tables into rows.
 *
 * @param {Model} open
 * @param {NamedFile[]} files
 * @returns {Promise<{ files: NamedFile[], notes: string[] }>} a file for each row, and sentences for people
 */
export async function tabled(open, files) {
  const rows = await Promise.all(files.filter(isTable).map((file) => open.tableRows(file)));
  const others = files.filter((file) => !isTable(file)).map(({ path }) => `${path} is no table: this model takes .csv files.`);
  return { files: rows.flat(), notes: others };
}

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
