// @ts-check
/**
 * Reads a model hub with the interface of Hugging Face: search, list of files, download. Nothing is
 * sent but the words of the search and the names of repositories and files; no cookies.
 */

import { downloaded } from '../../transfer.js';
import { hubAddress } from '../../state/surroundings.js';

/** @import { Progress } from '../../types.js' */

/** The number of repositories that a search shows. */
const shown = 30;

/** The number of pages of a repository's list that are read; each has up to 1000 files. */
const mostPages = 20;

/** @typedef {{ name: string, downloads: number, likes: number, gated: boolean }} Repository */
/** @typedef {{ path: string, bytes: number }} HubFile */
/** @typedef {{ model: HubFile, weights: HubFile[] }} HubModel a model and the files of its weights beside it */

/** @param {URL} url @param {AbortSignal} signal @param {string} what is read, for errors */
async function read(url, signal, what) {
  const answer = await fetch(url, { signal, credentials: 'omit' }).catch((cause) => {
    if (signal.aborted) throw cause;
    throw new Error(`${what} could not be read: ${url.host} does not answer. Check the connection.`);
  });
  if (answer.status === 401 || answer.status === 403) throw new Error(`${what} could not be read: ${url.host} shows it to some people only, after a login that this page does not have. Download the files there and drop them here.`);
  if (answer.status === 404) throw new Error(`${what} could not be read: ${url.host} has no such repository. Check its name.`);
  if (answer.status === 429) throw new Error(`${what} could not be read: ${url.host} takes no more requests from here for now. Try again in some minutes.`);
  if (!answer.ok) throw new Error(`${what} could not be read: ${url.host} answers “${answer.status}”. Try again later.`);
  const value = await answer.json().catch(() => null);
  if (!Array.isArray(value)) throw new Error(`${what} could not be read: ${url.host} answers something else than a list. It may have changed its interface.`);
  return { value, next: nextPage(answer.headers.get('Link'), url) };
}

/** The address of the next page; it must be of the same origin. @param {string | null} header @param {URL} from */
function nextPage(header, from) {
  const target = /<([^>]+)>;\s*rel="next"/.exec(header ?? '')?.[1];
  const url = target && URL.canParse(target, from) ? new URL(target, from) : null;
  return url && url.origin === from.origin ? url : null;
}

/** The owner and name of a repository, as parts of an address. @param {string} name */
const inAddress = (name) => name.split('/').map(encodeURIComponent).join('/');

/**
 * Repositories with ONNX models, those that are downloaded most first.
 *
 * @param {string} words
 * @param {AbortSignal} signal
 * @returns {Promise<Repository[]>}
 */
export async function search(words, signal) {
  const url = new URL('/api/models', hubAddress);
  for (const [key, value] of Object.entries({ search: words, filter: 'onnx', sort: 'downloads', direction: '-1', limit: String(shown) })) url.searchParams.set(key, value);
  const { value } = await read(url, signal, 'The search');
  return value.filter((one) => typeof one?.id === 'string').map(({ id, downloads, likes, gated }) => ({ name: id, downloads: Number(downloads) || 0, likes: Number(likes) || 0, gated: Boolean(gated) }));
}

/**
 * The ONNX models of a repository.
 *
 * @param {string} repository
 * @param {AbortSignal} signal
 * @returns {Promise<HubModel[]>}
 */
export async function modelsOf(repository, signal) {
  /** @type {HubFile[]} */
  const files = [];
  /** @type {URL | null} */
  let url = new URL(`/api/models/${inAddress(repository)}/tree/main?recursive=true`, hubAddress);
  for (let page = 0; url && page < mostPages; page += 1) {
    const { value, next } = await read(url, signal, repository);
    files.push(...value.filter((one) => one?.type === 'file' && typeof one.path === 'string').map(({ path, size, lfs }) => ({ path, bytes: Number(lfs?.size ?? size) || 0 })));
    url = next;
  }
  return files.filter(({ path }) => /\.onnx$/i.test(path)).map((model) => ({ model, weights: files.filter(({ path }) => isWeightsOf(path, model.path)) }));
}

/** True for `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data` beside `model.onnx`. @param {string} path @param {string} model */
const isWeightsOf = (path, model) => path.startsWith(model) && /^[._]data(_\d+)?$/.test(path.slice(model.length));

/**
 * Downloads a model with its weights.
 *
 * @param {string} repository
 * @param {HubModel} wanted
 * @param {AbortSignal} signal
 * @param {(progress: Progress) => void} onProgress
 */
export async function download(repository, { model, weights }, signal, onProgress) {
  const files = [];
  for (const { path } of [model, ...weights]) {
    const url = new URL(`/${inAddress(repository)}/resolve/main/${inAddress(path)}`, hubAddress);
    files.push({ path: path.slice(path.lastIndexOf('/') + 1), blob: await downloaded(url, { signal, onProgress, credentials: 'omit' }) });
  }
  return files;
}
