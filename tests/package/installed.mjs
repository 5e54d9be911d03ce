// A folder in which the package was installed from its tarball, without a network.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { model, program } from './programs.mjs';

export const checkout = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** @type {string | undefined} */
let made;

/** The path of the tarball. */
export function tarball() {
  made ??= process.env.OCTET_PACKAGE
    ?? execFileSync(process.execPath, [join(checkout, 'scripts', 'package.mjs')], { encoding: 'utf8' }).trim();
  return made;
}

/** @type {string | undefined} */
let home;

/** The folder of a project that has installed the package. */
export function project() {
  if (home) return home;
  home = mkdtempSync(join(tmpdir(), 'octet-package-'));
  writeFileSync(join(home, 'package.json'), '{ "name": "project", "private": true, "type": "module" }\n');
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error', tarball()], { cwd: home, stdio: 'inherit' });
  return home;
}

/** Writes a file of the project, with the folders above it. @param {string} path @param {string | Uint8Array} content */
export function write(path, content) {
  const file = join(project(), path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/**
 * Runs a module of the project in Node.
 *
 * @param {string} path
 * @param {string} text
 */
export function runModule(path, text) {
  const file = write(path, text);
  return spawnSync(process.execPath, [file], { cwd: project(), encoding: 'utf8', timeout: 120_000 });
}

/** @type {string | undefined} */
let printed;

/** Prints of the ten lines in Node, as JSON; they run once. */
export function inNode() {
  if (printed) return printed;
  const load = `(await import('node:fs')).readFileSync(${JSON.stringify(write('exact.onnx', model))})`;
  const { status, stdout, stderr } = runModule('main.mjs', program('octet-onnx', 'console.log(JSON.stringify(result));', load));
  if (status !== 0) throw new Error(`The ten lines failed in Node: ${stderr}`);
  printed = stdout;
  return printed;
}
