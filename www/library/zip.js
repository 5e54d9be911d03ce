// @ts-check
/** Files in a ZIP archive without compression, and tensors as `.npy`. Pure. */

/** @typedef {{ name: string, bytes: Uint8Array }} Entry */

/** The table of CRC-32. */
const table = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** CRC-32. @param {Uint8Array} bytes */
export function checksum(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = table[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** Little-endian numbers of 2 and 4 bytes. @param {[number, 2 | 4][]} numbers */
function packed(numbers) {
  const view = new DataView(new ArrayBuffer(numbers.reduce((sum, [, size]) => sum + size, 0)));
  let at = 0;
  for (const [number, size] of numbers) {
    if (size === 2) view.setUint16(at, number, true);
    else view.setUint32(at, number, true);
    at += size;
  }
  return new Uint8Array(view.buffer);
}

/** The first of January 1980, the earliest date of the format: equal files give equal archives. */
const date = 0x21;

/** An archive of some files. @param {Entry[]} entries @returns {Uint8Array<ArrayBuffer>} */
export function zip(entries) {
  /** @type {Uint8Array[]} */
  const parts = [];
  /** @type {Uint8Array[]} */
  const directory = [];
  let offset = 0;
  for (const { name, bytes } of entries) {
    const path = new TextEncoder().encode(name);
    // Version, flags (names are UTF-8), method, time and date, checksum, sizes, length of the name.
    /** @type {[number, 2 | 4][]} */
    const common = [[20, 2], [0x800, 2], [0, 2], [0, 2], [date, 2], [checksum(bytes), 4], [bytes.length, 4], [bytes.length, 4], [path.length, 2], [0, 2]];
    const head = packed([[0x04034b50, 4], ...common]);
    directory.push(packed([[0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]), path);
    parts.push(head, path, bytes);
    offset += head.length + path.length + bytes.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = packed([[0x06054b50, 4], [0, 2], [0, 2], [entries.length, 2], [entries.length, 2], [size, 4], [offset, 4], [0, 2]]);
  return joined([...parts, ...directory, end]);
}

/** Types of elements, as NumPy writes them. @type {Record<string, string>} */
const numpy = {
  float32: '<f4', float64: '<f8', double: '<f8', int8: '|i1', int16: '<i2', int32: '<i4', int64: '<i8', uint8: '|u1', uint16: '<u2', uint32: '<u4', uint64: '<u8', bool: '|b1',
};

/**
 * A tensor as `.npy`. Half-precision tensors are held as floats and written so.
 *
 * @param {{ element: string, shape: number[], data: ArrayBufferView }} tensor
 * @returns {Uint8Array}
 */
export function npy({ element, shape, data }) {
  const type = data instanceof Float32Array ? '<f4' : numpy[element];
  if (!type) throw new Error(`NumPy has no type for elements of ${element}.`);
  const text = `{'descr': '${type}', 'fortran_order': False, 'shape': (${shape.map((size) => `${size}, `).join('')}), }`;
  // The head is a multiple of 64 bytes long.
  const padded = `${text.padEnd(text.length + ((64 - ((11 + text.length) % 64)) % 64))}\n`;
  const head = joined([Uint8Array.of(0x93), new TextEncoder().encode('NUMPY'), Uint8Array.of(1, 0), packed([[padded.length, 2]]), new TextEncoder().encode(padded)]);
  return joined([head, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]);
}

/** @param {Uint8Array[]} parts @returns {Uint8Array<ArrayBuffer>} */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
