// @ts-check
/**
 * Reads of a conversion, in its order. The next one is under way while the last one is converted.
 * Reads that follow each other share a stream, which fills the same few buffers again: new buffers
 * cost the system more time than the bytes themselves.
 */

/** @typedef {{ file: string, offset: number, length: number }} Read */
/** @typedef {{ read: Read, bytes: Promise<Uint8Array<ArrayBuffer>> }} Coming */
/** @typedef {{ file: string, at: number, reader: ReadableStreamBYOBReader }} Opened */

/** Bytes of most reads, the slices of octet_quantize::recipe. */
const slice = 8 << 20;

/** @param {Read} one @param {Read} other */
const isSame = (one, other) => one.file === other.file && one.offset === other.offset && one.length === other.length;

/** The most bytes between two reads that a stream skips. */
const gap = 1 << 20;

/** @param {ArrayBuffer} bytes @param {number} offset @param {number} length */
function whole(bytes, offset, length) {
  if (bytes.byteLength < length) throw new Error(`it ends at byte ${offset + bytes.byteLength}`);
  return new Uint8Array(bytes);
}

/** All that read. A stream that nothing else holds is collected by Chromium in the middle of a read, which then never ends. @type {Set<ReadAhead>} */
const reading = new Set();

export class ReadAhead {
  #blobs;
  #waiting;
  /** @type {Coming | null} */
  #coming = null;
  /** @type {Opened | null} */
  #stream = null;
  /** The last read that was given. @type {{ read: Read, bytes: Uint8Array<ArrayBuffer> } | null} */
  #last = null;
  /** Buffers that are free. @type {ArrayBuffer[]} */
  #free = [];

  /** @param {(file: string) => Blob} blobs @param {Read[]} reads */
  constructor(blobs, reads) {
    this.#blobs = blobs;
    this.#waiting = reads.values();
    reading.add(this);
    this.#begin();
  }

  /**
   * The bytes of a read, which are valid until the next one; `null` if another one comes next. The
   * same read may be taken again.
   *
   * @param {Read} wanted
   */
  async take(wanted) {
    if (this.#last && isSame(this.#last.read, wanted)) return this.#last.bytes;
    const coming = this.#coming;
    if (!coming || !isSame(coming.read, wanted)) return null;
    if (this.#last) this.#keep(this.#last.bytes);
    this.#last = { read: coming.read, bytes: await coming.bytes };
    this.#begin();
    return this.#last.bytes;
  }

  /** @param {Uint8Array} bytes */
  #keep(bytes) {
    if (this.#free.length < 2) this.#free.push(/** @type {ArrayBuffer} */ (bytes.buffer));
  }

  /** Gives the streams free. */
  end() {
    reading.delete(this);
    this.#coming = null;
    this.#close();
  }

  /** Nobody waits until a stream is closed: Chromium closes one only after a read that is under way. */
  #close() {
    this.#stream?.reader.cancel().catch(() => {});
    this.#stream = null;
  }

  #begin() {
    const { value: read } = this.#waiting.next();
    this.#coming = read ? { read, bytes: this.#bytes(read) } : null;
    this.#coming?.bytes.catch(() => {}); // said when it is waited for
  }

  /** @param {Read} read */
  async #bytes({ file, offset, length }) {
    const stream = this.#at(file, offset);
    if (!stream) return whole(await this.#blobs(file).slice(offset, offset + length).arrayBuffer(), offset, length);
    if (offset > stream.at) this.#keep(await this.#fill(stream, offset - stream.at));
    return this.#fill(stream, length);
  }

  /** A stream that reaches a place; `null` if this browser's streams fill no buffers. @param {string} file @param {number} offset */
  #at(file, offset) {
    const open = this.#stream;
    if (open?.file === file && open.at <= offset && offset - open.at <= gap) return open;
    this.#close();
    const blob = this.#blobs(file).slice(offset);
    try {
      this.#stream = { file, at: offset, reader: blob.stream().getReader({ mode: 'byob' }) };
    } catch {
      this.#stream = null;
    }
    return this.#stream;
  }

  /** The next bytes of a stream. @param {Opened} stream @param {number} length */
  async #fill(stream, length) {
    const free = this.#free.pop();
    /** @type {ArrayBuffer} */
    let buffer = free && free.byteLength >= length ? free : new ArrayBuffer(Math.max(length, slice));
    for (let filled = 0; filled < length;) {
      const { done, value } = await stream.reader.read(new Uint8Array(buffer, filled, length - filled));
      if (done || !value) throw new Error(`it ends at byte ${stream.at}`);
      filled += value.length;
      stream.at += value.length;
      buffer = value.buffer;
    }
    return new Uint8Array(buffer, 0, length);
  }
}
