#!/usr/bin/env node
// Builds and tests the wasm variants of wasm-pack.toml.
//
//   node scripts/wasm.mjs build [VARIANT]...          into pkg/VARIANT/
//   node scripts/wasm.mjs test VARIANT chrome|firefox  tests/wasm in a headless browser
//   node scripts/wasm.mjs kernels                      the kernels' bench, for scripts/bench-kernels.mjs
//   node scripts/wasm.mjs size                         what the built variants weigh
//
// Run it through `make` or scripts/with-environment.sh: it takes the cache folder and the toolchain from
// there. Every variant has a target folder of its own: cargo gives a cdylib the same file name whatever the
// flags, so two variants in one folder would overwrite each other and still be called fresh.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
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

/** @param {import('./variants.mjs').Variant} variant */
const targetFolder = (variant) => join(required('OCTET_CACHE'), 'target', variant.name);

/**
 * The environment cargo needs. std is compiled with the variant's own features: threads need it (std has to
 * know of atomics), and Debian ships no wasm std at all.
 * @param {import('./variants.mjs').Variant} variant
 */
function environment(variant) {
  const debian = required('OCTET_TOOLCHAIN') === 'debian';
  return {
    ...process.env,
    CARGO_TARGET_DIR: targetFolder(variant),
    RUSTC_BOOTSTRAP: '1',
    CARGO_UNSTABLE_BUILD_STD: 'panic_abort,std',
    // Without backtraces, which wasm has none of; and a panic says its file only, as 7,500 lines and columns weigh too much.
    CARGO_UNSTABLE_BUILD_STD_FEATURES: 'panic-unwind',
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: rustFlags(variant, ['-Z location-detail=file', ...(debian ? ['-C linker-flavor=wasm-ld'] : [])]),
    ...(debian ? { CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: required('OCTET_WASM_LINKER') } : {}),
  };
}

/** @param {string} program @param {string[]} args @param {import('node:child_process').SpawnSyncOptions} options */
function run(program, args, options) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', cwd: checkout, ...options });
  if (error) fail(`${program} did not start: ${error.message}`);
  if (status !== 0) fail(`${program} ${args.slice(0, 2).join(' ')} ended with ${status}`);
}

/** @param {import('./variants.mjs').Variant} variant */
function build(variant) {
  const features = variant.cargoFeatures.length > 0 ? ['--features', variant.cargoFeatures.join(',')] : [];
  run('cargo', ['build', '--lib', '--release', '--locked', '--target', triple, ...features], { env: environment(variant) });

  const compiled = join(targetFolder(variant), triple, 'release', 'octet.wasm');
  const { mtimeMs, size } = statSync(compiled);
  const folder = join(checkout, 'pkg', variant.name);
  const stamp = join(folder, '.built-from');
  const identity = `${compiled} ${mtimeMs} ${size}, without comments\n`;
  if (readStamp(stamp) !== identity) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    run('wasm-bindgen', [
      '--target', 'web', '--out-dir', folder, '--out-name', 'octet',
      '--remove-name-section', '--remove-producers-section', compiled,
    ], {});
    withoutComments(join(folder, 'octet.js'));
    writeFileSync(stamp, identity);
  }
  weigh(variant);
}

/** What is documented stands in `octet.d.ts`, too, which nobody downloads. @param {string} file */
function withoutComments(file) {
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm, ''));
}

/** @param {import('./variants.mjs').Variant} variant */
function buildKernelBench(variant) {
  run('cargo', ['build', '--package', 'octet-kernel-bench', '--release', '--locked', '--target', triple], { env: environment(variant) });
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
  const file = join('pkg', variant.name, 'octet_bg.wasm');
  const bytes = readFileSync(join(checkout, file));
  const megabytes = (/** @type {number} */ count) => (count / 1e6).toFixed(2);
  console.log(`${file}: ${megabytes(bytes.length)} MB, ${megabytes(gzipSync(bytes, { level: 9 }).length)} MB gzipped`);
}

/** @param {import('./variants.mjs').Variant} variant @param {string} browser */
function test(variant, browser) {
  if (browser !== 'chrome' && browser !== 'firefox') fail(`no browser "${browser}": chrome or firefox`);
  run('wasm-pack', [
    'test', '--headless', `--${browser}`, '--release', 'tests/wasm', '--locked',
    ...variant.cargoFeatures.flatMap((feature) => ['--features', feature]),
  ], { env: { WASM_BINDGEN_TEST_TIMEOUT: '300', ...environment(variant) } });
}

const [command, ...names] = process.argv.slice(2);
switch (command) {
  case 'build':
    for (const variant of names.length > 0 ? names.map(variantNamed) : variants) build(variant);
    break;
  case 'test':
    test(variantNamed(names[0]), names[1]);
    break;
  case 'kernels':
    buildKernelBench(variantNamed('threads'));
    break;
  case 'size':
    variants.forEach(weigh);
    break;
  default:
    fail('say build, test, kernels or size');
}
