// @ts-check
/**
 * A file of the values between two layers, in this browser's storage: `mem_opt_level: 2` of learned
 * rounding. It is removed when the run ends.
 */

import { removeValues, valuesFolder } from './browser-storage.js';

/** @returns {Promise<ValueFile | undefined>} `undefined` where nothing is stored, as in some frames and in Node */
export async function openValueFile() {
  try {
    await removeValues();
    const folder = await valuesFolder({ create: true });
    const name = crypto.randomUUID();
    const file = await folder.getFileHandle(name, { create: true });
    return new ValueFile(await file.createSyncAccessHandle(), () => folder.removeEntry(name));
  } catch {
    return undefined;
  }
}

class ValueFile {
  #access;
  #remove;

  /** @param {FileSystemSyncAccessHandle} access @param {() => Promise<void>} remove */
  constructor(access, remove) {
    this.#access = access;
    this.#remove = remove;
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes @param {number} at */
  write(bytes, at) {
    if (this.#access.write(bytes, { at }) < bytes.length) throw new Error('the storage of this browser is full');
  }

  /** @param {Uint8Array<ArrayBuffer>} into @param {number} at */
  read(into, at) {
    if (this.#access.read(into, { at }) < into.length) throw new Error('the file has lost its end');
  }

  async close() {
    this.#access.close();
    await this.#remove().catch(() => {}); // the next run removes it
  }
}
