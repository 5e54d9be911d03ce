// @ts-check
/**
 * Places for the files of a conversion, in the worker: this browser's own storage, or a folder that
 * the person chose. Both keep what is written across a reload, with a journal beside it.
 */

import { bytes as sizeText } from './library/format.js';
import { onceFree, resultsFolder } from './browser-storage.js';

/** @import { Place, StreamedPlan } from './types.js' */

/**
 * @typedef {object} ResultFile
 * @property {string} name
 * @property {number} bytes
 */

/**
 * @typedef {object} ResultFiles
 * @property {() => Promise<string[]>} journals texts of the journals that are there, the longest first
 * @property {() => Promise<boolean>} finished true if the model file is there
 * @property {(files: ResultFile[], fresh: boolean) => Promise<void>} begin opens the files
 * @property {(to: number, offset: number, bytes: Uint8Array<ArrayBuffer>) => unknown} write
 * @property {(text: string) => Promise<void>} commit makes the writes last, then writes the journal
 * @property {(model: Uint8Array<ArrayBuffer>, text: string) => Promise<void>} finish closes the files, then writes the model
 * @property {() => Promise<void>} close gives the files free
 * @property {() => Promise<void>} discard removes everything
 */

/** @param {Place} place @param {StreamedPlan} plan @returns {Promise<ResultFiles>} */
export async function resultFiles(place, { model, journal }) {
  if (place.folder) return new ChosenFolder(place.folder, model, journal);
  try {
    return new BrowserStorage(await resultsFolder(), model, journal);
  } catch (cause) {
    throw failure('write', `this browser gives the page no storage for the result (${reason(cause)}): leave its private mode, or use the command line`);
  }
}

/** @param {string} kind @param {string} message */
export const failure = (kind, message) => Object.assign(new Error(message), { kind });

/** @param {any} cause */
const reason = (cause) => String(cause?.message || cause?.name || cause);

/** @param {any} cause @param {ResultFile} file */
function unwritable(cause, { name, bytes }) {
  if (cause?.kind) return cause;
  const size = `${name} (${sizeText(bytes)})`;
  return cause?.name === 'QuotaExceededError'
    ? failure('space', `the storage is full, so ${size} can't be written: free some space and go on, or discard what was made`)
    : failure('write', `${size} can't be written: ${reason(cause)}; check the place and go on, or discard what was made`);
}

/** @param {FileSystemDirectoryHandle} folder @param {string} name */
async function there(folder, name) {
  return folder.getFileHandle(name).then((handle) => handle, () => null);
}

/** @param {FileSystemDirectoryHandle} folder @param {string[]} names */
async function texts(folder, names) {
  const handles = await Promise.all(names.map((name) => there(folder, name)));
  const found = await Promise.all(handles.map(async (handle) => (handle ? (await handle.getFile()).text() : '')));
  // A longer journal is a newer one.
  return found.filter((text) => text !== '').sort((one, other) => other.length - one.length);
}

/** The files that a journal names. @param {string} text @returns {string[]} */
function filesIn(text) {
  try {
    return JSON.parse(text).files.map((/** @type {ResultFile} */ { name }) => String(name));
  } catch {
    return []; // a damaged journal
  }
}

/** A folder in this browser's storage. Writes go in place, so that only a journal is needed to go on. */
class BrowserStorage {
  #all;
  #model;
  #journals;
  #turn = 0;
  /** @type {FileSystemDirectoryHandle | null} */
  #folder = null;
  /** @type {{ file: ResultFile, access: FileSystemSyncAccessHandle }[]} */
  #open = [];

  /** @param {FileSystemDirectoryHandle} all @param {string} model @param {string} journal */
  constructor(all, model, journal) {
    this.#all = all;
    this.#model = model;
    // Two journals in turn: one of them is whole at any moment.
    this.#journals = [journal, `${journal}.2`];
  }

  async #there() {
    this.#folder ??= await this.#all.getDirectoryHandle(this.#model).catch(() => null);
    return this.#folder;
  }

  async journals() {
    const folder = await this.#there();
    return folder ? texts(folder, this.#journals) : [];
  }

  async finished() {
    const folder = await this.#there();
    return folder !== null && (await there(folder, this.#model)) !== null;
  }

  /** @param {ResultFile[]} files @param {boolean} fresh */
  async begin(files, fresh) {
    if (fresh) await this.discard();
    const folder = (this.#folder = await this.#all.getDirectoryHandle(this.#model, { create: true }));
    for (const file of files) {
      try {
        const handle = await folder.getFileHandle(file.name, { create: true });
        const access = await onceFree(() => handle.createSyncAccessHandle());
        this.#open.push({ file, access });
        // The whole size at once: a lack of room shows here.
        if (access.getSize() !== file.bytes) access.truncate(file.bytes);
      } catch (cause) {
        await this.close();
        if (fresh) await this.discard();
        throw unwritable(cause, file);
      }
    }
  }

  /** @param {number} to @param {number} offset @param {Uint8Array<ArrayBuffer>} bytes */
  write(to, offset, bytes) {
    const { file, access } = this.#open[to];
    try {
      const written = access.write(bytes, { at: offset });
      if (written < bytes.length) throw new DOMException('', 'QuotaExceededError');
    } catch (cause) {
      throw unwritable(cause, file);
    }
  }

  /** @param {string} text */
  async commit(text) {
    for (const { file, access } of this.#open) {
      try {
        access.flush();
      } catch (cause) {
        throw unwritable(cause, file);
      }
    }
    this.#turn = 1 - this.#turn;
    await this.#put(this.#journals[this.#turn], new TextEncoder().encode(text));
  }

  /** @param {Uint8Array<ArrayBuffer>} model @param {string} text */
  async finish(model, text) {
    await this.commit(text);
    await this.close();
    await this.#put(this.#model, model);
  }

  /** @param {string} name @param {Uint8Array<ArrayBuffer>} bytes */
  async #put(name, bytes) {
    if (!this.#folder) return;
    try {
      const handle = await this.#folder.getFileHandle(name, { create: true });
      const access = await onceFree(() => handle.createSyncAccessHandle());
      try {
        access.truncate(0);
        const written = access.write(bytes, { at: 0 });
        if (written < bytes.length) throw new DOMException('', 'QuotaExceededError');
        access.flush();
      } finally {
        access.close();
      }
    } catch (cause) {
      throw unwritable(cause, { name, bytes: bytes.length });
    }
  }

  async close() {
    for (const { access } of this.#open.splice(0)) access.close();
  }

  async discard() {
    await this.close();
    this.#folder = null;
    await onceFree(() => this.#all.removeEntry(this.#model, { recursive: true })).catch((cause) => {
      if (cause?.name !== 'NotFoundError') throw failure('write', `what was made can't be removed: ${reason(cause)}; close other tabs with this page and try again`);
    });
  }
}

/** A folder that the person chose. Writes last when their file is closed, which copies it. */
class ChosenFolder {
  #folder;
  #model;
  #journal;
  /** @type {ResultFile[]} */
  #files = [];
  /** @type {(FileSystemWritableFileStream | null)[]} */
  #open = [];

  /** @param {FileSystemDirectoryHandle} folder @param {string} model @param {string} journal */
  constructor(folder, model, journal) {
    this.#folder = folder;
    this.#model = model;
    this.#journal = journal;
  }

  journals() {
    return texts(this.#folder, [this.#journal]);
  }

  async finished() {
    return (await there(this.#folder, this.#model)) !== null;
  }

  /** @param {ResultFile[]} files @param {boolean} fresh */
  async begin(files, fresh) {
    // A folder of the person's own: nothing in it is replaced but what a journal names.
    const ours = (await this.journals()).length > 0;
    for (const name of ours ? [] : [this.#model, ...files.map((file) => file.name)]) {
      if (await there(this.#folder, name)) throw failure('write', `the folder ${this.#folder.name} has a file ${name} already: choose another folder, or remove that file`);
    }
    this.#files = files;
    if (fresh) await this.discard();
  }

  /** @param {number} to @param {number} offset @param {Uint8Array<ArrayBuffer>} data */
  async write(to, offset, data) {
    try {
      this.#open[to] ??= await this.#writable(to);
      await this.#open[to]?.write({ type: 'write', position: offset, data });
    } catch (cause) {
      throw unwritable(cause, this.#files[to]);
    }
  }

  /** @param {number} to */
  async #writable(to) {
    const { name, bytes } = this.#files[to];
    const handle = await this.#folder.getFileHandle(name, { create: true });
    const writable = await handle.createWritable({ keepExistingData: true });
    if ((await handle.getFile()).size !== bytes) await writable.truncate(bytes);
    return writable;
  }

  /** @param {string} text */
  async commit(text) {
    for (const [to, writable] of this.#open.entries()) {
      try {
        await writable?.close();
      } catch (cause) {
        throw unwritable(cause, this.#files[to]);
      }
      this.#open[to] = null;
    }
    await this.#put(this.#journal, new Blob([text]));
  }

  /** @param {Uint8Array<ArrayBuffer>} model @param {string} text */
  async finish(model, text) {
    await this.commit(text);
    await this.#put(this.#model, new Blob([model]));
    await this.#folder.removeEntry(this.#journal);
  }

  /** @param {string} name @param {Blob} content */
  async #put(name, content) {
    try {
      const writable = await (await this.#folder.getFileHandle(name, { create: true })).createWritable();
      await writable.write(content);
      await writable.close();
    } catch (cause) {
      throw unwritable(cause, { name, bytes: content.size });
    }
  }

  async close() {
    // What was written since the last journal is given up; the files stay as they were then.
    for (const writable of this.#open.splice(0)) await writable?.abort().catch(() => {});
  }

  async discard() {
    await this.close();
    const named = (await this.journals()).flatMap(filesIn);
    // Only what a conversion into this name makes: a journal is a file that anyone may have written.
    const ours = named.filter((name) => name.startsWith(`${this.#model}_data`));
    for (const name of new Set([...ours, this.#model, this.#journal])) {
      await this.#folder.removeEntry(name).catch(() => {}); // not there
    }
  }
}
