// The choice of scripts/toolchain.sh and the packages that scripts/setup.sh asks for, on simulated
// machines.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('../..', import.meta.url));

/**
 * A simulated machine: these programs come first in the path, with a checkout and a cache of its
 * own. The scripts set file times in the cache, which cargo compares.
 *
 * @param {Record<string, string>} programs
 * @param {string} [path]
 */
function machine(programs, path = process.env.PATH) {
  const folder = mkdtempSync(join(tmpdir(), 'octet-'));
  const [bin, own] = [join(folder, 'bin'), join(folder, 'checkout')];
  for (const part of ['scripts', 'patches']) cpSync(join(checkout, part), join(own, part), { recursive: true });
  mkdirSync(bin);
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(bin, name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  /** @type {Record<string, string | undefined>} */
  const env = { ...process.env, PATH: `${bin}:${path}`, OCTET_CACHE: join(folder, 'cache'), MADE_UP: folder };
  delete env.OCTET_TOOLCHAIN;
  const chosen = join(folder, 'cache', 'toolchain');
  return {
    /** @param {string[]} command */
    run: (...command) => spawnSync(join(own, 'scripts', command[0]), command.slice(1), { env, encoding: 'utf8' }),
    folder,
    chosen: () => (existsSync(chosen) ? readFileSync(chosen, 'utf8').trim() : null),
  };
}

// A rustup whose compiler has `version` and which can download as `download` says.
const rustup = (/** @type {string} */ version, /** @type {string} */ download) => ({
  cargo: 'true',
  rustc: `case $1 in --version) echo "rustc ${version} (made up)" ;; --print) echo "$MADE_UP/sysroot" ;; esac`,
  rustup: download,
});
const parts = 'mkdir -p "$MADE_UP/sysroot/lib/rustlib/src/rust/library/std" && '
  + 'touch "$MADE_UP/sysroot/lib/rustlib/src/rust/library/std/Cargo.toml"';

test('rustup is used where it can download what is missing, and where nothing is', () => {
  const able = machine(rustup('1.95.0', parts));
  assert.match(able.run('toolchain.sh').stderr, /asking rustup.*\ncompiler: rustup/);
  assert.equal(able.chosen(), 'rustup');
  const complete = machine(rustup('1.95.0', 'exit 1'));
  spawnSync('bash', ['-c', parts], { env: { ...process.env, MADE_UP: complete.folder } });
  assert.doesNotMatch(complete.run('toolchain.sh').stderr, /asking rustup/);
  assert.equal(complete.chosen(), 'rustup');
});

test('Debian’s compiler is used, or wanted, where rustup cannot download and where it is too old', () => {
  for (const [version, download] of [['1.95.0', 'exit 1'], ['1.80.0', parts]]) {
    const unable = machine(rustup(version, download));
    const { status, stderr } = unable.run('toolchain.sh');
    assert.doesNotMatch(stderr, /compiler: rustup/);
    if (status === 0) assert.equal(unable.chosen(), 'debian');
    else assert.equal(status, 3, stderr);
  }
});

test('an ordinary user is told the exact command for what is missing, and nothing is done', () => {
  // All programs of this machine except browsers.
  const folder = mkdtempSync(join(tmpdir(), 'octet-'));
  for (const name of readdirSync('/usr/bin')) {
    if (!/^(chromium|firefox)/.test(name)) symlinkSync(join('/usr/bin', name), join(folder, name));
  }
  const asUser = { ...rustup('1.95.0', parts), id: 'echo 1000', sudo: 'touch "$MADE_UP/done"', 'apt-get': 'touch "$MADE_UP/done"' };
  const node = `exec "${process.execPath}" "$@"`;
  const poor = machine({ ...asUser, node, npm: 'true' }, folder);
  const { status, stderr } = poor.run('setup.sh', 'test');
  assert.equal(status, 1, stderr);
  assert.match(stderr, /missing: .*chromium, firefox-esr/);
  assert.match(stderr, /Run this once, then the same command again:\n\n {4}sudo apt-get update\n {4}sudo apt-get install --yes --no-install-recommends .*chromium firefox-esr/);
  assert.ok(!existsSync(join(poor.folder, 'done')));
});
