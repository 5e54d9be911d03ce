// Node's files, streams and clock for the wasm of the command line, called synchronously. Errors
// have Node's `code`, which Rust turns into its own.

import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';

const [reads, writes, creates, truncates] = [1, 2, 4, 8];

/** The longest wait in milliseconds for a reader of a pipe before a write is tried again. */
const pause = 5;

/** @param {string} path @param {number} access */
export function open(path, access) {
  const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC } = fs.constants;
  const way = !(access & writes) ? O_RDONLY : access & reads ? O_RDWR : O_WRONLY;
  return fs.openSync(path, way | (access & creates ? O_CREAT : 0) | (access & truncates ? O_TRUNC : 0), 0o666);
}

/** Opens a new file that nothing else uses. It has no name where the system permits that. */
export function openUnnamed() {
  const folder = fs.mkdtempSync(join(os.tmpdir(), 'octet-'));
  const file = fs.openSync(join(folder, 'values'), 'wx+');
  try {
    fs.rmSync(folder, { recursive: true });
  } catch {
    // Windows keeps the names of open files.
  }
  return file;
}

/** @param {number} file */
export function close(file) {
  fs.closeSync(file);
}

/**
 * @param {number} file
 * @param {Uint8Array} bytes
 * @param {number} position below zero: where the file is
 */
export function read(file, bytes, position) {
  return bytes.length === 0 ? 0 : again(() => fs.readSync(file, bytes, 0, bytes.length, position < 0 ? null : position));
}

/**
 * @param {number} file
 * @param {Uint8Array} bytes
 * @param {number} position below zero: where the file is
 */
export function write(file, bytes, position) {
  return bytes.length === 0 ? 0 : again(() => fs.writeSync(file, bytes, 0, bytes.length, position < 0 ? null : position));
}

/**
 * Repeats a call while a pipe has nothing to read or no room.
 *
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function again(call) {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if (/** @type {any} */ (error).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
    }
  }
}

/** @param {number} file @param {number} length */
export function setLength(file, length) {
  fs.ftruncateSync(file, length);
}

/** @param {number} file */
export function sync(file) {
  fs.fsyncSync(file);
}

/** Kind (1: file, 2: folder, 0: other), bytes, and time of the last change. @param {fs.Stats} found */
const numbers = (found) => new Float64Array([found.isFile() ? 1 : found.isDirectory() ? 2 : 0, found.size, found.mtimeMs]);

/** @param {string} path */
export const metadata = (path) => numbers(fs.statSync(path));

/** @param {number} file */
export const metadataOf = (file) => numbers(fs.fstatSync(file));

/** @param {string} folder */
export const names = (folder) => fs.readdirSync(folder);

/** @param {string} path */
export const canonical = (path) => fs.realpathSync.native(path);

/** @param {string} from @param {string} to */
export function rename(from, to) {
  fs.renameSync(from, to);
}

/** @param {string} path */
export function remove(path) {
  fs.unlinkSync(path);
}

/** @param {string} path */
export function createFolders(path) {
  fs.mkdirSync(path, { recursive: true });
}

/** @param {string} from @param {string} to */
export function copy(from, to) {
  fs.copyFileSync(from, to);
}

/** @param {string} folder */
export function freeBytes(folder) {
  const found = fs.statfsSync(folder || '.');
  return found.bavail * found.bsize;
}

/** Node 20 does not know the limits of a container. */
export const freeMemory = () => process.availableMemory?.() ?? os.freemem();

export const temporaryFolder = () => os.tmpdir();

export const processId = () => process.pid;

export const processors = () => (os.availableParallelism ? os.availableParallelism() : os.cpus().length);

export const now = () => performance.timeOrigin + performance.now();
