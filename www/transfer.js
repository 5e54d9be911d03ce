// @ts-check
/** Files from addresses: those that a link names, and downloads with progress. */

/** @import { Progress } from './types.js' */

/**
 * The address of a file of this page's own origin.
 *
 * @param {string} text relative to the page, or absolute
 * @param {string} what it is, for the error
 * @param {string} base
 * @returns {URL}
 */
export function ownAddress(text, what, base) {
  const url = URL.canParse(text, base) ? new URL(text, base) : null;
  if (!url) throw new Error(`The address of the ${what}, “${text}”, cannot be read. Give a path on this server, such as “models/small.onnx”.`);
  if (url.origin === new URL(base).origin) return url;
  throw new Error(`The ${what} is at ${url.origin === 'null' ? url.protocol : url.origin}, and this page reads files of its own origin only (${new URL(base).origin}). `
    + 'Copy the file to this server, let the server pass that address on (a proxy), or open the model by hub.html if it is on Hugging Face.');
}

/** The name of the file at an address. @param {URL} url */
export function fileName(url) {
  const last = url.pathname.slice(url.pathname.lastIndexOf('/') + 1);
  try {
    return decodeURIComponent(last) || url.hostname;
  } catch {
    return last;
  }
}

/**
 * A file beside another one.
 *
 * @param {string} path relative, with slashes
 * @param {URL} url
 */
export const beside = (path, url) => new URL(path.split('/').map(encodeURIComponent).join('/'), url);

/**
 * Downloads a file.
 *
 * @param {URL} url
 * @param {{ signal?: AbortSignal, onProgress?: (progress: Progress) => void, credentials?: RequestCredentials }} [options]
 * @returns {Promise<Blob>}
 */
export async function downloaded(url, { signal, onProgress, credentials = 'same-origin' } = {}) {
  const name = fileName(url);
  const answer = await fetch(url, { signal, credentials }).catch((cause) => {
    if (signal?.aborted) throw cause;
    throw new Error(`${name} could not be downloaded: ${url.origin} does not answer, or it redirects to an origin that this page may not read. Check the address and the connection.`);
  });
  if (!answer.ok) throw Object.assign(new Error(`${name} could not be downloaded: ${url.origin} answers “${answer.status}${answer.statusText ? ` ${answer.statusText}` : ''}”. ${adviceFor(answer.status)}`), { status: answer.status });
  // A compressed answer states another length than that of the file.
  const of = answer.headers.has('Content-Encoding') ? 0 : Number(answer.headers.get('Content-Length')) || 0;
  const stage = `Downloading ${name}`;
  let done = 0;
  let told = 0;
  const counted = new TransformStream({
    /** @param {Uint8Array} part @param {TransformStreamDefaultController} to */
    transform(part, to) {
      done += part.length;
      to.enqueue(part);
      if (performance.now() - told < 100 && done !== of) return;
      told = performance.now();
      onProgress?.({ stage, done, of, unit: 'bytes' });
    },
  });
  onProgress?.({ stage, done, of, unit: 'bytes' });
  try {
    const blob = await new Response(answer.body?.pipeThrough(counted, { signal })).blob();
    if (of > 0 && blob.size < of) throw new Error('the answer is cut short');
    return blob;
  } catch (cause) {
    if (signal?.aborted) throw new DOMException('Stopped on request.', 'AbortError');
    throw new Error(`${name} could not be downloaded: the connection ended after ${done} bytes. Try again.`);
  }
}

/** @param {number} status */
function adviceFor(status) {
  if (status === 404) return 'Check the path.';
  if (status === 401 || status === 403) return 'The file needs a permission that this page does not have.';
  return 'Try again later.';
}
