// @ts-check
/** Converted models that are still in this browser's storage, complete or not. */

import { resultsFolder } from '../../browser-storage.js';
import { signal } from '../../library/signals.js';

/**
 * Their names and the bytes of all.
 *
 * @type {import('../../library/signals.js').Signal<{ names: string[], bytes: number } | null>}
 */
export const keptResults = signal(/** @type {any} */ (null));

/** Looks what is there. */
export async function findKeptResults() {
  const found = { names: /** @type {string[]} */ ([]), bytes: 0 };
  try {
    for await (const [name, folder] of (await resultsFolder()).entries()) {
      found.names.push(name);
      if (folder.kind === 'directory') found.bytes += await sizeOf(/** @type {FileSystemDirectoryHandle} */ (folder));
    }
  } catch {
    // Without storage nothing is kept.
  }
  keptResults.value = found.names.length > 0 ? found : null;
}

/** @param {FileSystemDirectoryHandle} folder */
async function sizeOf(folder) {
  let bytes = 0;
  for await (const file of folder.values()) {
    if (file.kind === 'file') bytes += (await /** @type {FileSystemFileHandle} */ (file).getFile()).size;
  }
  return bytes;
}

/** Removes all of them. */
export async function removeKeptResults() {
  try {
    const all = await resultsFolder();
    for await (const name of all.keys()) await all.removeEntry(name, { recursive: true });
  } catch {
    // A file that another tab writes stays; it is listed again.
  }
  await findKeptResults();
}
