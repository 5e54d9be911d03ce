// @ts-check
/** Turns a drop or a file dialog into a flat list of files with paths, folders included. */

/** @import { NamedFile } from './types.js' */

/** @param {Iterable<File>} files @returns {NamedFile[]} */
export function named(files) {
  return Array.from(files, (file) => ({ path: file.webkitRelativePath || file.name, blob: file }));
}

/**
 * The dropped files, folders included. The entries must be taken before the first `await`, as the
 * browser empties the list after the event.
 *
 * @param {DataTransfer} transfer
 * @returns {Promise<NamedFile[]>}
 */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => (item.kind === 'file' ? item.webkitGetAsEntry() : null));
  if (!entries.some((entry) => entry?.isDirectory)) return named(transfer.files);
  /** @type {NamedFile[]} */
  const result = [];
  for (const entry of entries) if (entry) await walk(entry, '', result);
  return result;
}

/** @param {FileSystemEntry} entry @param {string} folder @param {NamedFile[]} result */
async function walk(entry, folder, result) {
  const path = folder + entry.name;
  if (entry.isFile) {
    const file = await new Promise((done, failed) => /** @type {FileSystemFileEntry} */ (entry).file(done, failed));
    result.push({ path, blob: /** @type {File} */ (file) });
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    // `readEntries` returns a folder in batches; an empty one is the last.
    /** @type {FileSystemEntry[]} */
    const portion = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (portion.length === 0) return;
    for (const inner of portion) await walk(inner, `${path}/`, result);
  }
}

/** @param {File | NamedFile} file @returns {NamedFile} */
export const namedFile = (file) => (file instanceof File ? named([file])[0] : file);

/** @param {NamedFile} file */
export const isModel = ({ path }) => /\.(onnx|ort|pb)$/i.test(path) && !/(^|\/)(in|out)put_\d+\.pb$/i.test(path);

/** @param {NamedFile} file */
export const isPicture = ({ path }) => /\.(png|jpe?g)$/i.test(path);

/** True for pictures that only the browser decodes. @param {NamedFile} file */
export const otherPicture = ({ path }) => /\.(webp|bmp|gif|avif)$/i.test(path);

/** True for files that can only be samples or belong to them. @param {NamedFile} file */
export const isData = (file) => isPicture(file) || otherPicture(file) || isText(file) || isSound(file) || isTokenizer(file) || /\.(np[yz]|tokens|tsv)$|(^|\/)(in|out)put_\d+\.pb$/i.test(file.path);

/** @param {NamedFile} file */
export const isText = ({ path }) => /\.(txt|jsonl|csv)$/i.test(path);

/** True for statistics that several people share. @param {NamedFile} file */
export const isStatistics = ({ path }) => /\.stats$/i.test(path);

/** True for a file of ranges whose name says so: others are chosen as such. @param {NamedFile} file */
export const isRanges = ({ path }) => /\.(encodings|cache|flatbuffers|ranges\.json)$/i.test(path);

/** @param {NamedFile} file */
export const isSound = ({ path }) => /\.wav$/i.test(path);

/** @param {NamedFile} file */
export const isTable = ({ path }) => /\.csv$/i.test(path);

/** True for the tokenizer of a model and its configuration. @param {NamedFile} file */
export const isTokenizer = ({ path }) => /(^|\/)tokenizer(_config)?\.json$/.test(path);

/** @param {string} path */
export const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);
