// @ts-check
/**
 * Functions on the settings document (`docs/settings.md`): read and change keys, compare,
 * summarize, and write as a command line. Independent of the page.
 */

/** @import { Settings, TextSettings } from './types.js' */

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
 * A copy of the document with one key set or removed. Mappings that become empty are removed, too.
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

/**
 * Equal documents give equal texts, independent of the order of keys.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function canonical(value) {
  return JSON.stringify(value, (_, inner) =>
    inner && typeof inner === 'object' && !Array.isArray(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner);
}

/** True if GPTQ needs an extra pass over the samples. @param {Settings} document */
export const needsMoments = ({ scheme = 'static', rounding, blocks }) => (scheme === 'static' ? rounding : scheme === 'blocks' && blocks?.method) === 'gptq' || (scheme === 'blocks' && blocks?.method === 'awq');

/** True if constants are learned from the samples. @param {Settings} document */
export const tunes = ({ scheme = 'static', rounding, finetune }) => scheme === 'static' && (rounding === 'closed-form' || Boolean(finetune));

/** True if the method of blocks has zero points always. @param {unknown} method */
export const computesZeroPoints = (method) => method === 'hqq' || method === 'k_quant';

/**
 * Strength of channel equalization, which needs the samples again.
 *
 * @param {Settings} document
 */
export const equalizes = ({ scheme = 'static', equalize = false }) => scheme === 'static' && equalize;

/** The default range method. */
export const defaultMethod = 'auto';

/**
 * The method to calibrate for. Methods with an extra pass must be known during the calibration;
 * others can be chosen afterwards.
 *
 * @param {Settings} document
 */
export const passOf = ({ scheme = 'static', method }) => (scheme === 'static' && method?.startsWith('ort-') ? method : defaultMethod);

/**
 * True if a calibration for the settings `before` does not serve `document`.
 *
 * @param {Settings} document
 * @param {Settings} before
 */
export const runsAgain = (document, before) => (needsMoments(document) && !needsMoments(before)) || equalizes(document) !== equalizes(before)
  || (tunes(document) && canonical(document) !== canonical(before))
  || (passOf(document) !== defaultMethod && passOf(document) !== passOf(before));

/** @param {Settings} document */
export const needsSamples = (document) => (document.scheme ?? 'static') === 'static' || needsMoments(document);

/**
 * Sets the method explicitly; otherwise the method at the end of the calibration would apply.
 *
 * @param {Settings} document
 * @returns {Settings}
 */
export const inFull = (document) => ((document.scheme ?? 'static') === 'static' ? { method: defaultMethod, ...document } : document);

/**
 * True if samples are used, if there are any. In half precision they show activations that are too
 * large for it.
 *
 * @param {Settings} document
 */
export const takesSamples = (document) => needsSamples(document) || document.scheme === 'float16'
  || (document.scheme === 'blocks' && document.blocks?.activations === 'float16');

/** A short summary, for the run history. @param {Settings} document */
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
  if (tunes(document)) words.push(document.finetune ? 'fine-tuned' : 'closed form');
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
 * The equivalent command line. Settings without an option go into it as a document, and so does the
 * complete image preprocessing.
 *
 * @param {string} model
 * @param {Settings} document
 * @param {{ random?: number, given?: boolean, statistics?: boolean, ranges?: string, texts?: TextSettings, rate?: number }} [samples]
 *   how many random ones, in place of files; true if there are files; true for merged statistics in
 *   place of samples; the name of a file of ranges in place of both; how texts become samples; the rate of sound
 * @returns {string} for a POSIX shell; `SAMPLES` stands for where the samples are
 */
export function commandLine(model, document, { random = 0, given = false, statistics = false, ranges, texts, rate } = {}) {
  const parts = ['octet quantize', quoted(model.startsWith('-') ? `./${model}` : model)];
  if (needsSamples(document) && ranges) {
    parts.push('--ranges', quoted(ranges));
  } else if (needsSamples(document) && statistics) {
    parts.push('--stats', 'MERGED.stats');
  } else if (needsSamples(document) || (takesSamples(document) && given && random === 0)) {
    parts.push(...(random > 0 ? ['--demo', String(random)] : ['--samples', 'SAMPLES']));
    if (rate) parts.push('--sample-rate', String(rate));
    if (texts?.fields?.length) parts.push('--text-field', quoted(texts.fields.join(',')));
    if (texts?.maxLength) parts.push('--max-length', String(texts.maxLength));
    if (texts?.count) parts.push('--texts', String(texts.count));
    if (texts?.unit === 'paragraphs') parts.push('--paragraphs');
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
