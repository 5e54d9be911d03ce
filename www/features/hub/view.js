// @ts-check
/** Search of a model hub: repositories, their ONNX files with sizes, and a button that opens one. */

import { h } from '../../library/dom.js';
import { bytes, count, plural } from '../../library/format.js';
import { signal } from '../../library/signals.js';
import { table } from '../../library/table.js';
import { aborted, fail, say } from '../../state/messages.js';
import { opening, run } from '../../state/page.js';
import { hubAddress } from '../../state/surroundings.js';
import { downloading, take } from '../model/open.js';
import { download, modelsOf, search } from './hub.js';

/** @import { HubModel, Repository } from './hub.js' */

const host = hubAddress ? new URL(hubAddress).host : '';

/** The search and what it found; they stay when the panel is built again. */
const words = signal('');
const failure = signal('');
const busy = signal('');
/** @type {import('../../library/signals.js').Signal<Repository[] | null>} */
const found = signal(/** @type {any} */ (null));
/** @type {import('../../library/signals.js').Signal<{ repository: string, models: HubModel[] } | null>} */
const chosen = signal(/** @type {any} */ (null));

/** The reading in progress; a newer one ends it. */
let reading = new AbortController();

/** @param {string} what @param {(signal: AbortSignal) => Promise<void>} work */
async function read(what, work) {
  reading.abort();
  const mine = (reading = new AbortController());
  [busy.value, failure.value] = [what, ''];
  try {
    await work(mine.signal);
  } catch (error) {
    if (reading !== mine || aborted(error)) return;
    failure.value = /** @type {Error} */ (error).message;
    say(failure.value);
  } finally {
    if (reading === mine) busy.value = '';
  }
}

/** The owner and name in what was typed or pasted: an address of a repository, or these alone. @param {string} text */
function repositoryIn(text) {
  const path = text.startsWith(`${hubAddress}/`) ? text.slice(hubAddress.length + 1) : text;
  return /^([\w.-]+\/[\w.-]+)/.exec(path)?.[1] ?? '';
}

const find = () => read('Searching', async (stop) => {
  const text = words.peek().trim();
  chosen.value = null;
  const named = repositoryIn(text);
  found.value = await search(named || text, stop);
  say(`${plural(found.value.length, 'repository', 'repositories')} found.`);
  // A full name needs no choice.
  if (named && !found.value.some(({ name }) => name !== named)) await choose(named);
});

/** @param {string} repository */
const choose = (repository) => read(`Reading ${repository}`, async (stop) => {
  const models = await modelsOf(repository, stop);
  chosen.value = { repository, models };
  say(`${repository} has ${plural(models.length, 'ONNX file')}.`);
});

/** @param {string} repository @param {HubModel} wanted */
async function openModel(repository, wanted) {
  try {
    await take(await downloading(wanted.model.path, (stop, onProgress) => download(repository, wanted, stop, onProgress)));
  } catch (error) {
    opening.value = null;
    fail(`${wanted.model.path} of ${repository} could not be opened`, error, 'Choose another file, or try again.');
  }
}

const isBusy = () => run.value !== null || opening.value !== null;

export function view() {
  return h('section', { class: 'panel hub', 'aria-labelledby': 'hub-title' },
    h('h2', { id: 'hub-title' }, `Models of ${host}`),
    h('p', { class: 'note' }, `This page may read from ${host}, which sees your search and which files you load. Your samples and results are sent nowhere. `, h('a', { href: 'index.html' }, 'The main page'), ' can reach no other site at all.'),
    h('form', { class: 'row', role: 'search', onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), void find()) },
      h('label', { class: 'field hub-words' }, h('span', {}, 'Name of a model or a repository'),
        h('input', { type: 'search', id: 'hub-words', autocomplete: 'off', spellcheck: false, value: () => words.value, oninput: (/** @type {Event} */ event) => (words.value = /** @type {HTMLInputElement} */ (event.target).value) })),
      h('button', { type: 'submit', class: 'primary', id: 'hub-search' }, 'Search')),
    h('p', { class: 'note', role: 'status', hidden: () => !busy.value }, () => busy.value && `${busy.value} …`),
    h('p', { class: 'callout bad', role: 'alert', id: 'hub-failure', hidden: () => !failure.value }, () => failure.value),
    () => (chosen.value ? files(chosen.value) : found.value && repositories(found.value)),
  );
}

/** @param {Repository[]} all */
function repositories(all) {
  if (all.length === 0) return h('p', { class: 'none' }, 'Nothing with ONNX files has this name. Try fewer letters, or the name of its owner.');
  return table(['Repository', 'Downloads', 'Likes'], all.map(({ name, downloads, likes, gated }) => [
    h('span', {}, h('button', { type: 'button', class: 'link', onclick: () => void choose(name) }, name), gated && h('span', { class: 'note' }, ' (after a login only)')),
    count(downloads), count(likes)]), [1, 2]);
}

/** @param {{ repository: string, models: HubModel[] }} of */
function files({ repository, models }) {
  return h('div', { class: 'gap' },
    h('div', { class: 'row spread' }, h('h3', {}, repository), h('button', { type: 'button', class: 'quiet small', id: 'hub-back', onclick: () => (chosen.value = null) }, 'Back to the results')),
    models.length === 0 && h('p', { class: 'none' }, 'This repository has no ONNX file.'),
    models.length > 0 && table(['File', 'Size', ''], models.map((one) => [
      h('span', {}, h('code', {}, one.model.path), one.weights.length > 0 && h('span', { class: 'note' }, ` with ${one.weights.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)).join(', ')}`)),
      bytes([one.model, ...one.weights].reduce((sum, file) => sum + file.bytes, 0)),
      h('button', { type: 'button', class: 'small', 'aria-label': `Open ${one.model.path}`, disabled: isBusy, onclick: () => void openModel(repository, one) }, 'Open'),
    ]), [1]),
    models.length > 0 && h('p', { class: 'note' }, 'Take a float model: one whose name says fp16, int8, q4 or “quantized” has been changed already.'));
}
