// @ts-check
/** The third studio is driven by this script: it opens a model, follows the run and takes the result. */

/** @import { OctetStudioElement } from '../../www/element.js' */

const find = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (document.querySelector(selector));
const studio = /** @type {OctetStudioElement} */ (find('#driven'));
const start = /** @type {HTMLButtonElement} */ (find('#start'));
const progress = /** @type {HTMLProgressElement} */ (find('#progress'));
const outcome = find('#outcome');

studio.addEventListener('octet-progress', (event) => {
  const { done = 0, of = 0 } = /** @type {CustomEvent} */ (event).detail;
  if (of > 0) progress.value = done / of;
});

/** @param {string} path @returns {Promise<{ path: string, blob: Blob }>} */
async function file(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path} could not be downloaded (${answer.status}).`);
  return { path: path.slice(path.lastIndexOf('/') + 1), blob: await answer.blob() };
}

start.addEventListener('click', async () => {
  start.disabled = true;
  outcome.textContent = 'Running.';
  try {
    await studio.open(await file('models/small.onnx'));
    await studio.addSamples(await Promise.all([0, 1, 2, 3].map((number) => file(`models/${number}.npy`))));
    const { bytesBefore } = await studio.quantize({ method: 'minmax' });
    const result = await studio.result();
    progress.value = 1;
    outcome.textContent = `${bytesBefore} bytes became ${result?.bytes.length}: ${result?.name}.`;
  } catch (error) {
    outcome.textContent = `This did not work. ${/** @type {Error} */ (error).message}`;
  }
  start.disabled = false;
});
