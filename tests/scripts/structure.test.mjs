// The lint of the architecture reports each kind of problem, and nothing for a good tree.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

/** The lint's output for a tree of files. @param {Record<string, string>} files */
function lint(files) {
  const root = mkdtempSync(join(tmpdir(), 'octet-structure-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { status, stderr } = spawnSync(process.execPath, ['scripts/structure.mjs', root], { encoding: 'utf8' });
  return { status, stderr };
}

const forbids = '#![forbid(unsafe_code)]\n';

/** The documented crates, in this order. @param {string[]} names */
const documented = (...names) => ({ 'docs/architecture.md': `    crates/           the layers\n${names.map((name) => `      ${name}/    a layer\n        inner/    a folder\n`).join('')}    src/\n      lib.rs\n` });

/** A crate. @param {string} name @param {string} manifest lines behind the package's @param {Record<string, string>} files */
const crate = (name, manifest, files) => Object.fromEntries([
  [`crates/${name}/Cargo.toml`, `[package]\nname = "octet-${name}"\n\n${manifest}`],
  ...Object.entries(files).map(([path, text]) => [`crates/${name}/${path}`, path === 'lib.rs' ? forbids + text : text]),
]);

/** One crate of these files. @param {Record<string, string>} files */
const alone = (files) => ({ ...documented('a'), ...crate('a', '', files) });

const fiveOperators = '["Conv", "Gemm", "MatMul", "Relu", "com.microsoft", "FusedMatMul"]';

/** @type {[string, Record<string, string>, RegExp | null][]} */
const cases = [
  ['a tree whose files import downwards', alone({ 'lib.rs': 'mod x;\npub use x::X;\n', 'x/mod.rs': 'mod y;\npub struct X(y::Y);\n', 'x/y.rs': 'pub struct Y;\n' }), null],
  ['a circle of two folders', alone({ 'lib.rs': 'mod x;\npub struct A(x::X);\n', 'x/mod.rs': 'use super::A;\npub struct X(Box<A>);\n' }), /crates\/a\/lib\.rs: 2 files of 2 folders import one another.*\n\s+crates\/a\/(lib|x\/mod)\.rs \(.*\) → .* → /],
  ['a circle within a folder', alone({ 'lib.rs': 'mod x;\npub struct A(x::X);\n', 'x.rs': 'use super::A;\npub struct X(Box<A>);\n' }), null],
  ['a circle over three files', alone({ 'lib.rs': 'mod x;\nmod y;\nmod z;\n', 'x/mod.rs': 'use crate::y::Y;\npub struct X(Y);\n', 'y.rs': 'pub struct Y(crate::z::Z);\n', 'z.rs': 'pub fn z() -> u8 { super::x::inner::f() }\npub struct Z(Box<crate::x::X>);\n' }), /3 files of 2 folders/],
  ['a circle by a path within a function', alone({ 'lib.rs': 'mod x;\npub fn f() -> u8 { x::g() }\n', 'x/mod.rs': 'pub fn g() -> u8 { super::f() }\n' }), /2 files of 2 folders/],
  ['a circle by an import of all names', alone({ 'lib.rs': 'mod x;\nuse x::*;\npub fn f() -> u8 { g() }\n', 'x/mod.rs': 'use super::*;\npub fn g() -> u8 { f() }\n' }), /2 files of 2 folders/],
  ['a circle by an import of a group', alone({ 'lib.rs': 'mod x;\npub struct A;\npub fn f() { x::g() }\n', 'x/mod.rs': 'use std::{fmt, io::{self, Read}};\nuse crate::{x::{self as own}, A as B};\npub fn g() { B; }\n' }), /2 files of 2 folders/],
  ['a name that is passed on counts for the file that defines it', alone({ 'lib.rs': 'mod x;\nmod base;\npub use base::Base;\npub struct A(x::X);\n', 'base.rs': 'pub struct Base;\n', 'x/mod.rs': 'use crate::Base;\npub struct X(Base);\n' }), null],
  ['a module that is imported counts for the files that are used', alone({ 'lib.rs': 'mod x;\nmod low;\npub fn f() { x::g() }\n', 'low/mod.rs': 'mod leaf;\npub use leaf::h;\n', 'low/leaf.rs': 'pub fn h() {}\n', 'x/mod.rs': 'use super::low;\npub fn g() { low::h() }\n' }), null],
  ['an import in tests', alone({ 'lib.rs': 'mod x;\npub struct A(x::X);\n', 'x/mod.rs': 'pub struct X;\n#[cfg(test)]\nmod tests {\n    use crate::A;\n}\n#[cfg(test)]\nuse super::A;\n' }), null],
  ['an import in comments and texts', alone({ 'lib.rs': 'mod x;\npub struct A(x::X);\n', 'x/mod.rs': '// use crate::A;\n/* /* use */ crate::A */\npub struct X;\nconst T: &str = "crate::A";\nconst R: &str = r#"super::"A"#;\n' }), null],
  ['a circle of the page', { 'www/main.js': "import { a } from './views/a.js';\nexport const b = a;\n", 'www/views/a.js': "import {\n  b,\n} from '../main.js';\nexport const a = () => b;\n" }, /www\/main\.js: 2 files of 2 folders/],
  ['types in comments of the page', { 'www/main.js': "import { a } from './views/a.js';\nexport const b = a;\n", 'www/views/a.js': "/** @typedef {import('../main.js').B} B */\nexport const a = 1;\n" }, null],
  ['a name that the page passes on', { 'www/main.js': "import { a } from './views/a.js';\nexport { c } from './c.js';\nexport const b = a;\n", 'www/c.js': 'export const c = 1;\n', 'www/views/a.js': "import { c } from '../main.js';\nexport const a = c;\n" }, null],
  ['a later import of the page', { 'www/main.js': "import './views/a.js';\nexport const b = 1;\n", 'www/views/a.js': "export const a = async () => (await import('../main.js')).b;\n" }, /2 files of 2 folders/],
  ['crates in their order', { ...documented('a', 'b'), ...crate('a', '', { 'lib.rs': '' }), ...crate('b', '[dependencies]\nocteta = "1"\nocted-a = "1"\noctet-a = { path = "../a" }\n', { 'lib.rs': '' }) }, null],
  ['a crate that depends on a later one', { ...documented('a', 'b'), ...crate('a', '[dependencies]\noctet-b = { path = "../b" }\n', { 'lib.rs': '' }), ...crate('b', '', { 'lib.rs': '' }) }, /crates\/a\/Cargo\.toml: a depends on b, which docs\/architecture\.md lists behind it/],
  ['a crate that tests with a later one', { ...documented('a', 'b'), ...crate('a', '[target.\'cfg(unix)\'.dev-dependencies]\noctet-b.path = "../b"\n', { 'lib.rs': '' }), ...crate('b', '', { 'lib.rs': '' }) }, /a depends on b/],
  ['a crate that depends on the pipeline', { ...documented('a'), ...crate('a', '[dependencies.octet]\npath = "../.."\n', { 'lib.rs': '' }) }, /a layer depends on octet/],
  ['a crate that is not documented', { ...documented('b'), ...crate('a', '', { 'lib.rs': '' }) }, /the list under crates\/ lacks a/],
  ['models for tests in tests', { ...documented('a', 'test-models'), ...crate('a', '[dev-dependencies]\noctet-test-models = { path = "../test-models" }\n', { 'lib.rs': '' }), ...crate('test-models', '[dependencies]\noctet-a = { path = "../a" }\n', { 'lib.rs': '' }) }, null],
  ['models for tests outside tests', { ...documented('test-models', 'a'), ...crate('a', '[dependencies]\noctet-test-models = { path = "../test-models" }\n', { 'lib.rs': '' }), ...crate('test-models', '', { 'lib.rs': '' }) }, /octet-test-models is for tests; move it/],
  ['a manifest that names tract', { ...documented('a'), ...crate('a', '[dependencies]\ntract-onnx = "1"\n', { 'lib.rs': '' }) }, /crates\/a\/Cargo\.toml: tract-onnx is a dependency/],
  ['a profile and a comment that name tract', { ...documented('a'), ...crate('a', '[profile.release.package.tract-linalg]\nopt-level = 3\n', { 'lib.rs': '/// As tract_onnx does.\npub const T: &str = "tract";\n' }) }, null],
  ['code that names tract', alone({ 'lib.rs': 'use tract_onnx::pb;\n' }), /crates\/a\/lib\.rs: the code names tract_onnx/],
  ['the runtime names tract', { ...documented('runtime'), ...crate('runtime', '[dependencies]\ntract-onnx = "1"\n', { 'lib.rs': 'use tract_onnx::pb;\n' }) }, null],
  ['a crate that does not forbid unsafe code', { ...documented('a'), 'crates/a/Cargo.toml': '', 'crates/a/lib.rs': '//! Forbids nothing unsafe.\n' }, /crates\/a\/lib\.rs: a has no unsafe code and does not forbid it/],
  ['a crate with unsafe code', { ...documented('a'), 'crates/a/Cargo.toml': '', 'crates/a/lib.rs': 'mod x;\n', 'crates/a/x.rs': 'pub fn f() { unsafe {} }\n' }, null],
  ['a root crate that does not forbid unsafe code', { 'Cargo.toml': '', 'src/lib.rs': '\n', 'src/bin/octet.rs': 'fn main() { unsafe {} }\n' }, /src\/lib\.rs: octet has no unsafe code and does not forbid it/],
  ['few files that name operators', alone({ 'lib.rs': `pub const T: &[&str] = &${fiveOperators};\n` }), null],
  ['many files that name operators', alone({ 'lib.rs': '', ...Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`${at}.rs`, `pub const T: &[&str] = &${fiveOperators};\n`])) }), /99 files name 5 operators or more, and at most \d+ may; [^\n]*\n\s+5 crates\/a\/\d+\.rs/],
  ['many files of modules for tests', alone({ 'lib.rs': '#[cfg(test)]\nmod helpers;\n', 'helpers/mod.rs': `${Array.from({ length: 99 }, (_, at) => `mod m${at};\n`).join('')}`, ...Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`helpers/m${at}.rs`, `pub const T: &[&str] = &${fiveOperators};\n`])) }), null],
  ['many files of modules, one of them for tests', alone({ 'lib.rs': '#[cfg(test)]\nmod m0;\n#[cfg(not(test))]\nmod m1;\n', ...Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`m${at}.rs`, `pub const T: &[&str] = &${fiveOperators};\n`])) }), /98 files name 5 operators or more/],
  ['many files of tests and of operators', { ...documented('graph'), ...crate('graph', '', { 'lib.rs': '', ...Object.fromEntries(Array.from({ length: 99 }, (_, at) => [at % 3 === 0 ? `operators/${at}.rs` : at % 3 === 1 ? `tests/${at}.rs` : `${at}.rs`, at % 3 === 2 ? `#[cfg(test)]\nmod tests {\n    const T: &[&str] = &${fiveOperators};\n}\n` : `const T: &[&str] = &${fiveOperators};\n`])) }) }, null],
];

for (const [name, files, expected] of cases) {
  test(`structure: ${name}`, () => {
    const { status, stderr } = lint(files);
    assert.equal(status, expected ? 1 : 0, stderr);
    if (expected) assert.match(stderr, expected);
  });
}
