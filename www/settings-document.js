// @ts-check
/**
 * The settings document (`docs/settings.md`) as a value: read and changed key by key, compared, put into words, and written as a
 * command line. Nothing here knows the page.
 */

/** @import { Settings } from './types.js' */

/** @typedef {string[]} Path keys from the outside in */

/** @param {unknown} document @param {Path} path @returns {any} */
export function get(document, path) {
  let at = /** @type {any} */ (document);
  for (const key of path) {
    if (at === null || typeof at !== 'object') return undefined;
    at = Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/**
 * The document with one key said, or no longer said; what is empty then goes too. The one it is given stays as it was.
 *
 * @template T
 * @param {T} document
 * @param {Path} path
 * @param {unknown} value `undefined` takes the key out
 * @returns {T}
 */
export function put(document, [key, ...rest], value) {
  /** @type {any} */
  const copy = { ...document };
  const inner = rest.length > 0 ? put(copy[key] ?? {}, rest, value) : value;
  const gone = inner === undefined || (rest.length > 0 && Object.keys(inner).length === 0);
  if (gone) delete copy[key];
  else copy[key] = inner;
  return copy;
}

/** The same text for documents that say the same, in whatever order. @param {unknown} value @returns {string} */
export function canonical(value) {
  return JSON.stringify(value, (_, inner) =>
    inner && typeof inner === 'object' && !Array.isArray(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner);
}

/** Whether it needs samples run once more, for rounding weights together. @param {Settings} document */
export const needsMoments = ({ scheme = 'static', rounding, blocks }) => (scheme === 'static' ? rounding : scheme === 'blocks' && blocks?.method) === 'gptq';

/** By how much it makes channels alike, which only samples run anew can. @param {Settings} document */
export const equalizes = ({ scheme = 'static', equalize = false }) => scheme === 'static' && equalize;

/** The method where the document names none. */
export const defaultMethod = 'auto';

/** The method to run samples for: those that count them twice must be known meanwhile, all others can be chosen afterwards. @param {Settings} document */
export const passOf = ({ method }) => (method?.startsWith('ort-') ? method : defaultMethod);

/** Whether the samples must run again for it, once they ran for another. @param {Settings} document @param {Settings} before */
export const runsAgain = (document, before) => (needsMoments(document) && !needsMoments(before)) || equalizes(document) !== equalizes(before)
  || (passOf(document) !== defaultMethod && document.method !== before.method);

/** @param {Settings} document */
export const needsSamples = (document) => (document.scheme ?? 'static') === 'static' || needsMoments(document);

/** What it says, briefly: for a list of what was tried. @param {Settings} document */
export function inWords(document) {
  const scheme = document.scheme ?? 'static';
  const words = [scheme === 'static' ? (document.method ?? defaultMethod) : scheme];
  if (document.format && document.format !== 'qdq') words.push(document.format);
  if (document.activations?.type && document.activations.type !== 'u8') words.push(`activations ${document.activations.type}`);
  if (document.weights?.type && document.weights.type !== 'i8') words.push(`weights ${document.weights.type}`);
  if (document.weights?.per_channel === false) words.push('per-tensor weights');
  if (document.guard === false) words.push('no mixed precision');
  if (scheme === 'blocks') words.push(`${document.blocks?.bits ?? 4} bits`);
  if (needsMoments(document)) words.push('gptq');
  if (equalizes(document)) words.push('equalized');
  const nodes = Object.values(document.by_node ?? {});
  const float = nodes.filter((node) => node.float).length + (document.float?.length ?? 0);
  if (float > 0) words.push(`${float} kept float`);
  const wide = nodes.filter((node) => /16/.test(node.activations?.type ?? '')).length;
  if (wide > 0) words.push(`${wide} with 16 bits`);
  const tensors = Object.keys(document.tensors ?? {}).length;
  if (tensors > 0) words.push(`${tensors} ${tensors === 1 ? 'tensor' : 'tensors'} with own settings`);
  for (const key of /** @type {const} */ (['by_operator', 'by_name'])) {
    const count = Object.keys(document[key] ?? {}).length;
    if (count > 0) words.push(`${count} ${key.replace('_', ' ')}`);
  }
  return words.join(', ');
}

/**
 * The command that does the same outside the page. What the command line has no word for stands in it as a document, and so does all of
 * how pictures are read: whatever keys there are come along.
 *
 * @param {string} model
 * @param {Settings} document
 * @param {{ random?: number }} [samples] how many random ones, in place of files
 * @returns {string} for a POSIX shell; `SAMPLES` stands for where the samples are
 */
export function commandLine(model, document, { random = 0 } = {}) {
  const parts = ['octet quantize', quoted(model.startsWith('-') ? `./${model}` : model)];
  if (needsSamples(document)) {
    parts.push(...(random > 0 ? ['--demo', String(random)] : ['--samples', 'SAMPLES']));
  }
  const { method, scheme, format, ...rest } = document;
  if (Object.keys(rest).length > 0) {
    parts.push('--config', quoted(JSON.stringify(document)));
  } else {
    if (method) parts.push('--method', quoted(method));
    if (scheme) parts.push('--scheme', scheme);
    if (format) parts.push('--format', format);
  }
  return parts.join(' ');
}

/** @param {string} text as a shell takes it */
const quoted = (text) => (/^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
