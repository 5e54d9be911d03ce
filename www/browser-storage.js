// @ts-check
/**
 * Places in this browser's storage: the folder of converted models, with one folder a model, the
 * journal of weights that learn, and the folder of values between their layers.
 */

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

/** The folder of values between layers that learn; there is one file for each run. @param {FileSystemGetDirectoryOptions} [options] */
export async function valuesFolder(options) {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle('values', options);
}

/** Removes the files of runs that have ended, such as those of pages that were left. */
export async function removeValues() {
  const folder = await valuesFolder().catch(() => null); // no run has had one
  if (!folder) return;
  const names = [];
  for await (const name of folder.keys()) names.push(name);
  // A run of another tab keeps its file.
  for (const name of names) await folder.removeEntry(name).catch(() => {});
}

/** Time in milliseconds that the worker of a page that was left may take to free its files. */
const patience = 10_000;

/**
 * Waits while another page holds the file. The worker of a page that was left may hold its files for
 * some seconds: Chromium lets it go on so long, Firefox frees them late.
 *
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function onceFree(work) {
  const end = performance.now() + patience;
  for (;;) {
    try {
      return await work();
    } catch (/** @type {any} */ cause) {
      if (cause?.name !== 'NoModificationAllowedError') throw cause;
      if (performance.now() > end) throw new Error('another tab with this page is writing it');
    }
    await new Promise((next) => setTimeout(next, 100));
  }
}
