// @ts-check
/**
 * Reads of a conversion, in its order. The next one is under way while the last one is converted.
 * Reads that follow each other share a stream, which fills the same few buffers again: new buffers
 * cost the system more time than the bytes themselves.
 */

/** @typedef {{ file: string, offset: number, length: number }} Read */
/** @typedef {{ file: string, at: number, reader: ReadableStreamBYOBReader }} Opened */

/** Bytes of most reads, the slices of octet_quantize::recipe. */
const slice = 8 << 20;

/** The most bytes between two reads that a stream skips. */
const gap = 1 << 20;

export class ReadAhead {
  #blobs;
  #waiting;
  /** @type {{ read: Read, bytes: Promise<Uint8Array> } | null} */
  #coming = null;
  /** @type {Opened | null} */
  #stream = null;
  /** The bytes that were given last. @type {Uint8Array | null} */
  #last = null;
  /** Buffers that are free. @type {ArrayBuffer[]} */
  #free = [];

  /** @param {(file: string) => Blob} blobs @param {Read[]} reads */
  constructor(blobs, reads) {
    this.#blobs = blobs;
    this.#waiting = reads.values();
    this.#begin();
  }

  /**
   * The bytes of a read, which are valid until the next call; `null` if another one comes next.
   *
   * @param {Read} wanted
   */
  async take({ file, offset, length }) {
    const coming = this.#coming;
    if (coming?.read.file !== file || coming.read.offset !== offset || coming.read.length !== length) return null;
    if (this.#last) this.#keep(this.#last);
    this.#last = await coming.bytes;
    this.#begin();
    return this.#last;
  }

  /** @param {Uint8Array} bytes */
  #keep(bytes) {
    if (this.#free.length < 2) this.#free.push(/** @type {ArrayBuffer} */ (bytes.buffer));
  }

  /** Gives the streams free. */
  end() {
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
    if (!stream) return new Uint8Array(await this.#blobs(file).slice(offset, offset + length).arrayBuffer());
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
