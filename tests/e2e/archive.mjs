// A ZIP archive as usual tools write it, with deflated files.

import { crc32, deflateRawSync } from 'node:zlib';

/**
 * @param {Record<string, Uint8Array>} files by path
 * @param {{ stored?: boolean, size?: number }} [options] `size`: the stated size of each file, where it is wrong
 * @returns {Buffer}
 */
export function archive(files, { stored = false, size } = {}) {
  /** @type {Buffer[]} */
  const parts = [];
  /** @type {Buffer[]} */
  const directory = [];
  let offset = 0;
  for (const [path, bytes] of Object.entries(files)) {
    const name = Buffer.from(path);
    const packed = stored ? Buffer.from(bytes) : deflateRawSync(bytes);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(stored ? 0 : 8, 4);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(size ?? bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const head = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, packed]);
    const end = Buffer.alloc(14);
    end.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, end, name]));
    parts.push(head);
    offset += head.length;
  }
  const list = Buffer.concat(directory);
  const last = Buffer.alloc(18);
  last.writeUInt16LE(directory.length, 4);
  last.writeUInt16LE(directory.length, 6);
  last.writeUInt32LE(list.length, 8);
  last.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, list, Buffer.from('PK\x05\x06'), last]);
}
