// @ts-check
/**
 * Opens what a link names: a model, samples and settings of this page's own origin. All of it is
 * downloaded before anything on the page changes.
 */

import { isModel } from '../../files.js';
import { unzip } from '../../library/unzip.js';
import { beside, downloaded, fileName, ownAddress } from '../../transfer.js';
import { aborted, fail, problem, say } from '../../state/messages.js';
import { large, model, opening, settings } from '../../state/page.js';
import { link } from '../../state/surroundings.js';
import { addSamples, clearSamples } from '../data/samples.js';
import { downloading, take } from '../model/open.js';
import { adopt } from '../settings/undo.js';
import { applyImages, readDocument } from '../settings/whole-document.js';

/** @import { NamedFile } from '../../types.js' */

/** @typedef {{ model: string, samples: string[], settings: string }} Link addresses as they were written */

/** @param {string} text @param {URL} address */
function read(text, address) {
  try {
    return readDocument(text);
  } catch (error) {
    throw new Error(`${fileName(address)} is no settings document: ${/** @type {Error} */ (error).message}. Give a file of YAML or JSON as docs/settings.md describes it.`);
  }
}

/**
 * Opens a link. What is open stays open if the link fails.
 *
 * @param {Link} given
 * @param {{ keep?: import('../../types.js').Settings }} [how] `keep`: the document in place of the link's, as the person edited it
 * @returns {Promise<boolean>} whether the model is open
 */
export async function openLink(given, { keep } = {}) {
  try {
    if (!given.model) throw new Error('A link needs a model: add “model=” with the path of an .onnx file.');
    const base = document.baseURI;
    const where = {
      model: ownAddress(given.model, 'model', base),
      samples: given.samples.map((text) => ownAddress(text, 'samples', base)),
      settings: given.settings ? ownAddress(given.settings, 'settings', base) : null,
    };
    const name = fileName(where.model);
    const got = await downloading(name, async (signal, onProgress) => {
      const whole = where.settings && read(await (await downloaded(where.settings, { signal })).text(), where.settings);
      const blob = await downloaded(where.model, { signal, onProgress });
      /** @type {NamedFile[]} */
      const samples = [];
      for (const address of where.samples) samples.push(...await samplesAt(address, signal, onProgress));
      return { whole, blob, samples };
    });
    return await show(given, where.model, { name, keep, ...got });
  } catch (error) {
    opening.value = null;
    const nothing = model.peek() || large.peek() ? 'What was open is still open.' : 'Open a model of your own, or correct the link.';
    if (!aborted(error)) fail('This link could not be opened', error, nothing);
    else say('Cancelled.');
    return false;
  }
}

/** @param {URL} address @param {AbortSignal} signal @param {(progress: import('../../types.js').Progress) => void} onProgress */
async function samplesAt(address, signal, onProgress) {
  const blob = await downloaded(address, { signal, onProgress });
  const path = fileName(address);
  return /\.zip$/i.test(path) ? unzip(blob) : [{ path, blob }];
}

/**
 * @param {Link} given
 * @param {URL} address
 * @param {{ name: string, blob: Blob, samples: NamedFile[], whole: ReturnType<typeof readDocument> | null, keep?: import('../../types.js').Settings }} got
 */
async function show(given, address, { name, blob, samples, whole, keep }) {
  const path = isModel({ path: name, blob }) ? name : `${name}.onnx`;
  const before = { link: link.peek(), large: large.peek() };
  link.value = { file: blob, ...given };
  await take([{ path, blob }]);
  const open = model.peek();
  const isOpen = open?.files[0]?.blob === blob || (large.peek() !== null && large.peek() !== before.large);
  if (!isOpen || problem.peek()) {
    link.value = before.link;
    return false;
  }
  await weights(address);
  // After the opening, which removes settings that belong to the nodes of another model.
  const wanted = keep ?? whole?.document;
  if (wanted) adopt(wanted, { now: true, byOwner: true });
  applyImages(whole?.images ?? null);
  if (model.peek() !== open || !open) return true;
  if (given.samples.length > 0) {
    clearSamples();
    await addSamples(samples);
  }
  return true;
}

/** Adds the model's files of weights, which are beside it. @param {URL} address */
async function weights(address) {
  const inPieces = large.peek();
  const wanted = inPieces ? inPieces.model.missing(inPieces.files) : (model.peek()?.wanted ?? []);
  if (wanted.length === 0) return;
  const files = await downloading(fileName(address), async (signal, onProgress) => {
    /** @type {NamedFile[]} */
    const all = [];
    for (const path of wanted) all.push({ path, blob: await downloaded(beside(path, address), { signal, onProgress }) });
    return all;
  });
  opening.value = null;
  await (inPieces ? inPieces.add(files) : take(files));
}

/** The link in the address of the page; `null` if it has none. @returns {Link | null} */
export function linkInAddress() {
  const given = new URLSearchParams(location.search);
  const found = { model: given.get('model') ?? '', samples: given.getAll('samples'), settings: given.get('settings') ?? '' };
  return found.model || found.samples.length > 0 || found.settings ? found : null;
}

/** Opens the link in the address. @param {boolean} edited whether the fragment has settings: they are the person's and stay */
export async function followLink(edited) {
  const found = linkInAddress();
  return found !== null && openLink(found, edited ? { keep: settings.peek().document } : {});
}
