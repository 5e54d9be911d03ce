// @ts-check
/**
 * Reads the files of a ZIP archive, stored or deflated. Sizes and checksums are compared with those
 * that the archive states. Archives with passwords, in several parts or in the ZIP64 form are
 * refused.
 */

import { checksum } from './zip.js';

/** Limits against damaged and hostile archives. */
const most = { files: 20_000, bytes: 2e9 };

/** The longest end of an archive: its last record and a comment. */
const longestEnd = 22 + 0xffff;

/** @typedef {{ path: string, method: number, crc: number, packed: number, size: number, at: number }} Entry */

/** @param {string} reason @returns {never} */
function refuse(reason) {
  throw new Error(`The archive cannot be read: ${reason}. Make it again as a plain .zip file.`);
}

/** @param {Blob} blob */
const viewOf = async (blob) => new DataView(await blob.arrayBuffer());

/**
 * The files of an archive, without folders and without the hidden files of operating systems.
 *
 * @param {Blob} archive
 * @returns {Promise<{ path: string, blob: Blob }[]>}
 */
export async function unzip(archive) {
  const entries = (await directory(archive)).filter(({ path }) => !path.endsWith('/') && !/(^|\/)(\.|__MACOSX\/)/.test(path));
  const total = entries.reduce((sum, { size }) => sum + size, 0);
  if (total > most.bytes) refuse(`its files have ${Math.ceil(total / 1e6)} MB together, and at most ${most.bytes / 1e6} MB are read`);
  const files = [];
  for (const entry of entries) files.push({ path: entry.path, blob: await content(archive, entry) });
  return files;
}

/** @param {Blob} archive @returns {Promise<Entry[]>} */
async function directory(archive) {
  const tail = await viewOf(archive.slice(Math.max(0, archive.size - longestEnd)));
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) refuse('it has no end record, so it is not a ZIP file or it is cut short');
  const [disk, count, size, offset] = [tail.getUint16(end + 4, true), tail.getUint16(end + 10, true), tail.getUint32(end + 12, true), tail.getUint32(end + 16, true)];
  if (disk !== 0) refuse('it is one part of several');
  if (count === 0xffff || offset === 0xffffffff) refuse('it has the ZIP64 form');
  if (count > most.files) refuse(`it lists ${count} files, and at most ${most.files} are read`);
  if (offset + size > archive.size) refuse('it is cut short');
  const list = await viewOf(archive.slice(offset, offset + size));
  const entries = [];
  for (let at = 0, index = 0; index < count; index += 1) {
    if (at + 46 > list.byteLength || list.getUint32(at, true) !== 0x02014b50) refuse('its list of files is damaged');
    const lengths = [28, 30, 32].map((place) => list.getUint16(at + place, true));
    if (at + 46 + lengths[0] > list.byteLength) refuse('its list of files is damaged');
    const path = new TextDecoder().decode(new Uint8Array(list.buffer, at + 46, lengths[0]));
    if (list.getUint16(at + 8, true) & 1) refuse(`${path} has a password`);
    entries.push({
      path, method: list.getUint16(at + 10, true), crc: list.getUint32(at + 16, true),
      packed: list.getUint32(at + 20, true), size: list.getUint32(at + 24, true), at: list.getUint32(at + 42, true),
    });
    at += 46 + lengths[0] + lengths[1] + lengths[2];
  }
  return entries;
}

/** @param {Blob} archive @param {Entry} entry @returns {Promise<Blob>} */
async function content(archive, { path, method, crc, packed, size, at }) {
  const head = await viewOf(archive.slice(at, at + 30));
  if (head.byteLength < 30 || head.getUint32(0, true) !== 0x04034b50) refuse(`${path} is not where the list of files says`);
  const start = at + 30 + head.getUint16(26, true) + head.getUint16(28, true);
  const raw = archive.slice(start, start + packed);
  if (raw.size !== packed) refuse(`${path} is cut short`);
  if (method !== 0 && method !== 8) refuse(`${path} is compressed by method ${method}, and only “deflate” is known`);
  const bytes = method === 0 ? new Uint8Array(await raw.arrayBuffer()) : await inflated(raw, path, size);
  if (bytes.length !== size || checksum(bytes) !== crc) refuse(`${path} is damaged`);
  return new Blob([bytes]);
}

/** @param {Blob} raw @param {string} path @param {number} size that the archive states @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function inflated(raw, path, size) {
  /** @type {Uint8Array[]} */
  const parts = [];
  let sum = 0;
  const reader = raw.stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => refuse(`${path} is damaged`));
    if (done) break;
    sum += value.length;
    // An entry that grows beyond its size is not read further.
    if (sum > size) {
      await reader.cancel();
      refuse(`${path} is longer than the list of files says`);
    }
    parts.push(value);
  }
  const whole = new Uint8Array(sum);
  parts.reduce((place, part) => (whole.set(part, place), place + part.length), 0);
  return whole;
}
