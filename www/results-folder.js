// @ts-check
/** The folder of converted models in this browser's storage: one folder a model, named as its file. */

/** @returns {Promise<FileSystemDirectoryHandle>} */
export async function resultsFolder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle('conversions', { create: true });
}
