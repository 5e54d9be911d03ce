// @ts-check
/** The engine of this worker: the loaded wasm, its threads and the open sessions. */

/** @import { NamedFile, Progress, SampleRef } from './types.js' */
/** @typedef {typeof import('../pkg/threads/octet.js')} Wasm */
/** @typedef {import('../pkg/threads/octet.js').Session} Session */
/** @typedef {(progress: Progress) => void} Report */
/** @typedef {{ name: string, files: NamedFile[] }} Sample the files of one sample */

/** @type {Wasm | null} */
let wasm = null;

/** The number of threads; 1 where they did not start. */
export let threads = 1;

/** Sessions by the number that the page gave them. @type {Map<number, Session>} */
export const sessions = new Map();

/** @param {Wasm} module */
export function use(module) {
  wasm = module;
}

/** @param {number} count */
export function useThreads(count) {
  threads = count;
}

export const isLoaded = () => wasm !== null;

/** @returns {Wasm} */
export function loaded() {
  if (!wasm) throw new Error('The engine is not loaded yet.');
  return wasm;
}

/** @param {number} key @returns {Session} */
export function session(key) {
  const found = sessions.get(key);
  if (!found) throw new Error('This model is not open.');
  return found;
}

/** The memory of the engine. */
export function memory() {
  return loaded().memoryUsage();
}

/** Groups files into samples. @param {NamedFile[]} files @returns {Sample[]} */
export function samplesOf(files) {
  const byPath = new Map(files.map((file) => [file.path, file]));
  /** @type {SampleRef[]} */
  const refs = loaded().group(files.map((file) => file.path));
  return refs.map(({ name, parts }) => ({
    name,
    files: parts.flatMap((path) => byPath.get(path) ?? []),
  }));
}

/** The error of a call that the page stopped. */
export const stopped = () => Object.assign(new Error('Stopped on request.'), { kind: 'stopped' });

/** The message of a panic; empty where there was none. */
export function panicMessage() {
  return wasm ? new TextDecoder().decode(wasm.panicText().slice()).replace(/\0+$/, '') : '';
}
