#!/usr/bin/env node
// Builds and tests the wasm variants of wasm-pack.toml.
//
//   node scripts/wasm.mjs build [VARIANT]...           into pkg/VARIANT/; `all`, or no name, for every one
//   node scripts/wasm.mjs compile [VARIANT]...         cargo's part of that, which needs no wasm-bindgen
//   node scripts/wasm.mjs test VARIANT chromium|firefox  tests/wasm in a headless browser
//   node scripts/wasm.mjs kernels                      the kernels' bench, for scripts/bench-kernels.mjs
//   node scripts/wasm.mjs tidy                         removes packages that were built from other sources
//   node scripts/wasm.mjs size                         what the built variants weigh
//
// Run it through `make` or scripts/with-environment.sh, which set the cache folder and the
// toolchain. Every variant has its own target folder. cargo gives a cdylib the same file name for
// all flags, so two variants in one folder would overwrite each other and still count as fresh.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { cargo as runCargo } from './cargo.mjs';
import { readVariants, rustFlags } from './variants.mjs';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const triple = 'wasm32-unknown-unknown';
const variants = readVariants(join(checkout, 'wasm-pack.toml'));

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`wasm: ${message}`);
  process.exit(1);
}

/** @param {string} name @returns {string} */
function required(name) {
  return process.env[name] ?? fail(`${name} is not set: call this through make or scripts/with-environment.sh`);
}

/** @param {string} name */
function variantNamed(name) {
  return variants.find((variant) => variant.name === name)
    ?? fail(`no variant "${name}" in wasm-pack.toml, which has ${variants.map((v) => v.name).join(', ')}`);
}

/** @param {string[]} names */
const chosen = (names) => (names.length === 0 || names.includes('all') ? variants : names.map(variantNamed));

/** @param {import('./variants.mjs').Variant} variant */
const targetFolder = (variant) => join(required('OCTET_CACHE'), 'target', variant.target);

/**
 * The environment of cargo. std is compiled with the variant's own features: threads need a std
 * with atomics, and Debian ships no wasm std.
 * @param {import('./variants.mjs').Variant} variant
 */
function environment(variant) {
  const debian = required('OCTET_TOOLCHAIN') === 'debian';
  return {
    ...process.env,
    CARGO_TARGET_DIR: targetFolder(variant),
    RUSTC_BOOTSTRAP: '1',
    CARGO_UNSTABLE_BUILD_STD: 'panic_abort,std',
    // No backtraces, which wasm does not have. A panic names only its file: 7,500 lines and columns
    // would add too much size. Derived `Debug` gives the name of a value without its fields, for the
    // same reason. Sorts of std are small rather than fast: there are a hundred types that
    // are sorted, and none in a hot loop.
    CARGO_UNSTABLE_BUILD_STD_FEATURES: 'optimize_for_size,panic-unwind',
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: rustFlags(variant, ['-Z location-detail=file', '-Z fmt-debug=shallow', ...(debian ? ['-C linker-flavor=wasm-ld'] : [])]),
    ...(debian ? { CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: required('OCTET_WASM_LINKER') } : {}),
  };
}

/** @param {import('./variants.mjs').Variant} variant */
const features = (variant) => (variant.cargoFeatures.length > 0 ? ['--features', variant.cargoFeatures.join(',')] : []);

/** @param {string} program @param {string[]} args @param {import('node:child_process').SpawnSyncOptions} options */
function run(program, args, options) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', cwd: checkout, ...options });
  if (error) fail(`${program} did not start: ${error.message}`);
  if (status !== 0) fail(`${program} ${args.slice(0, 2).join(' ')} ended with ${status}`);
}

/**
 * @param {import('./variants.mjs').Variant} variant
 * @param {string[]} args
 */
async function cargo(variant, args) {
  const { status, artifacts } = await runCargo([...args, '--release', '--locked', '--target', triple], { cwd: checkout, env: environment(variant) });
  if (status !== 0) fail(`cargo ${args[0]} of the variant ${variant.name} ended with ${status}`);
  return artifacts;
}

/** @param {import('./variants.mjs').Variant} variant @returns {Promise<string>} the compiled file */
async function compile(variant) {
  await cargo(variant, ['build', '--lib', '--package', variant.package, ...features(variant)]);
  return join(targetFolder(variant), triple, 'release', `${variant.package.replaceAll('-', '_')}.wasm`);
}

/** @param {import('./variants.mjs').Variant} variant */
async function build(variant) {
  const compiled = await compile(variant);
  const { mtimeMs, size } = statSync(compiled);
  const folder = packageFolder(variant);
  const stamp = join(folder, '.built-from');
  const identity = `${compiled} ${mtimeMs} ${size}, without comments, ordered, from ${sources()}\n`;
  if (readStamp(stamp) !== identity) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    run('wasm-bindgen', [
      '--target', 'web', '--out-dir', folder, '--out-name', moduleName(variant),
      '--remove-name-section', '--remove-producers-section', compiled,
    ], {});
    withoutComments(join(folder, `${moduleName(variant)}.js`));
    const file = join(folder, `${moduleName(variant)}_bg.wasm`);
    const { ordered } = await import('./wasm-order.mjs'); // needs npm's packages, which come beside the compilation
    writeFileSync(file, ordered(readFileSync(file)));
    writeFileSync(stamp, identity);
  }
  weigh(variant);
}

/** @param {import('./variants.mjs').Variant} variant */
const packageFolder = (variant) => join(checkout, 'pkg', variant.name);

/** The name of the module's files: that of its crate, without the project's. @param {import('./variants.mjs').Variant} variant */
const moduleName = (variant) => variant.package.replace(/^octet-/, '');

/** A checksum of all sources of the wasm. */
function sources() {
  const read = (/** @type {string} */ path) => (/\.(rs|toml)$/.test(path) ? [path] : []);
  const under = (/** @type {string} */ folder) => readdirSync(join(checkout, folder), { recursive: true, encoding: 'utf8' }).flatMap(read).map((file) => join(folder, file));
  const inside = ['crates', 'packages', 'patches', 'src'].flatMap(under).filter((file) => !/\/(tests|test-models)\//.test(file));
  const hash = createHash('sha256');
  for (const file of ['Cargo.lock', 'Cargo.toml', 'wasm-pack.toml', ...inside.sort()]) hash.update(`${file}\n`).update(readFileSync(join(checkout, file)));
  return hash.digest('hex').slice(0, 16);
}

/**
 * The page must not load an engine from other sources, so packages of older sources are removed.
 */
function tidy() {
  for (const variant of variants) {
    const stamp = readStamp(join(packageFolder(variant), '.built-from'));
    if (stamp === undefined || stamp.endsWith(`from ${sources()}\n`)) continue;
    rmSync(packageFolder(variant), { recursive: true });
    console.log(`pkg/${variant.name} was built from other sources and is removed; make build makes every variant`);
  }
}

/**
 * The documentation comments go to `octet.d.ts`, which visitors don't download.
 *
 * @param {string} file
 */
function withoutComments(file) {
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm, ''));
}

/** @param {string} file */
function readStamp(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** @param {import('./variants.mjs').Variant} variant */
function weigh(variant) {
  const file = join('pkg', variant.name, `${moduleName(variant)}_bg.wasm`);
  const bytes = readFileSync(join(checkout, file));
  const megabytes = (/** @type {number} */ count) => (count / 1e6).toFixed(2);
  console.log(`${file}: ${megabytes(bytes.length)} MB, ${megabytes(gzipSync(bytes, { level: 9 }).length)} MB gzipped`);
}

/**
 * Compiles `tests/wasm` with the flags of the shipped build and runs it in a browser.
 *
 * @param {import('./variants.mjs').Variant} variant
 * @param {string} browser
 */
async function test(variant, browser) {
  if (browser !== 'chromium' && browser !== 'firefox') fail(`no browser "${browser}": chromium or firefox`);
  const made = await cargo(variant, ['test', '--no-run', '--package', 'octet-wasm-tests', '--test', 'octet', ...features(variant)]);
  const compiled = made.find(({ target, executable }) => target.kind.includes('test') && executable);
  if (!compiled) fail('cargo names no file of the tests');
  const { runTests } = await import('./wasm-tests.mjs'); // which wants the npm packages; a build does not
  const { ok, why, text } = await runTests(compiled.executable, browser);
  console.log(text);
  if (!ok) fail(`${variant.name} in ${browser}: ${why}`);
}

const [command, ...names] = process.argv.slice(2);
switch (command) {
  case 'build':
    for (const variant of chosen(names)) await build(variant);
    break;
  case 'tidy':
    tidy();
    break;
  case 'compile':
    for (const variant of chosen(names)) await compile(variant);
    break;
  case 'test':
    await test(variantNamed(names[0]), names[1]);
    break;
  case 'kernels':
    await cargo(variantNamed('threads'), ['build', '--package', 'octet-kernel-bench']);
    break;
  case 'size':
    variants.filter((variant) => existsSync(packageFolder(variant))).forEach(weigh);
    break;
  default:
    fail('say build, compile, test, kernels, tidy or size');
}
