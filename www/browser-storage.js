// @ts-check
/** Places in this browser's storage: the folder of converted models, with one folder a model, and the journal of weights that learn. */

/** @returns {Promise<FileSystemDirectoryHandle>} */
export async function resultsFolder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle('conversions', { create: true });
}

/** The file of weights that learn; there is one for all tabs. */
export const journalName = 'learned-weights.journal';

/** Removes it. */
export async function removeJournal() {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry(journalName).catch(() => {}); // there is none, or a run writes it
}
