// @ts-check
/**
 * The journal of weights that learn, in this browser's storage. After a reload, or where the worker
 * was ended, the next run with the same model, settings and samples goes on from it.
 */

import { journalName, onceFree } from './browser-storage.js';

/** @returns {Promise<TuningJournal | null>} `null` where this browser stores nothing, or another tab writes it */
export async function openJournal() {
  try {
    const root = await navigator.storage.getDirectory();
    const file = await root.getFileHandle(journalName, { create: true });
    return new TuningJournal(await onceFree(() => file.createSyncAccessHandle()));
  } catch {
    return null;
  }
}

class TuningJournal {
  /** @type {FileSystemSyncAccessHandle | null} */
  #access;
  #end = 0;

  /** @param {FileSystemSyncAccessHandle} access */
  constructor(access) {
    this.#access = access;
  }

  /** Reads all of it. @returns {Uint8Array} */
  read() {
    const bytes = new Uint8Array(this.#access?.getSize() ?? 0);
    this.#access?.read(bytes, { at: 0 });
    return bytes;
  }

  /** Begins a journal, or keeps the whole records of this one. @param {Uint8Array} header @param {number} whole bytes of them */
  begin(header, whole) {
    this.#end = whole;
    this.#try((access) => access.truncate(whole));
    if (whole === 0) this.add(header);
  }

  /** Adds a record, at once on the disk. @param {Uint8Array} record */
  add(record) {
    this.#try((access) => {
      const written = access.write(record, { at: this.#end });
      if (written < record.length) throw new DOMException('', 'QuotaExceededError');
      access.flush();
      this.#end += written;
    });
  }

  /** The run goes on without a journal where it can't be written. @param {(access: FileSystemSyncAccessHandle) => void} work */
  #try(work) {
    try {
      if (this.#access) work(this.#access);
    } catch {
      this.close();
    }
  }

  close() {
    this.#access?.close();
    this.#access = null;
  }
}
