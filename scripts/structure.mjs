// Checks the architecture from the sources: part of `make lint` and `make test`.
//
//   - Files of different folders import one another in one direction only, in each crate and in www/.
//   - A crate depends only on crates that docs/architecture.md lists before it.
//   - Only the crate `runtime` names tract.
//   - A crate without unsafe code forbids it.
//   - Few files name many operators, apart from the operators' own files.
//
// An argument is the root of another tree. `--list` prints the files that name many operators.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { testFilesOfCrate, tokens, usesOfCrate, withoutTests } from './rust-modules.mjs';

/** Files that may name `many` operators or more. */
const mostFiles = 8;
const many = 5;

/** Folders in which each file is about its operators. */
const operatorFolders = ['crates/graph/operators/', 'crates/int8/operators/', 'crates/targets/', 'crates/tune/operators/'];

/** Builders of models for tests; no crate may depend on them outside its tests, but those that only test. */
const testModels = 'test-models';
const onlyTests = ['fuzz'];

const list = process.argv.includes('--list');
const root = process.argv.slice(2).find((argument) => !argument.startsWith('--')) ?? fileURLToPath(new URL('..', import.meta.url));

/** @typedef {Map<string, Map<string, string>>} Imports for each file the files that it imports, each with the name in the code */

/** @type {string[]} */
const problems = [];

/** @param {string} path */
const read = (path) => readFileSync(join(root, path), 'utf8');

/** @param {string} folder @param {RegExp} name @returns {string[]} */
function filesIn(folder, name) {
  if (!existsSync(join(root, folder))) return [];
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && name.test(entry.name));
  return files.map((entry) => relative(root, join(entry.parentPath, entry.name))).sort();
}

/** The imports of the page's modules. A name that is only passed on counts as one of the file that has it. @returns {Imports} */
function importsOfPage() {
  const statement = /^(import|export)\s+(?:([^'";]*?)\s+from\s+)?['"](\.[^'"]+)['"]|\b(import)\(\s*['"](\.[^'"]+)['"]/gm;
  const files = filesIn('www', /\.m?js$/);
  const codes = new Map(files.map((file) => [file, read(file).replace(/(^|\s)\/\*\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')]));
  const statements = (/** @type {string} */ file) => [...(codes.get(file) ?? '').matchAll(statement)].map(([, word, names = '', from, , later]) => ({
    exported: word === 'export',
    names: [...names.replace(/[{}]/g, ',').split(',')].map((name) => name.trim()).filter(Boolean),
    target: join(dirname(file), from ?? later ?? ''),
  }));
  /** @param {string} file @param {string} name @param {number} [depth] @returns {string} */
  const origin = (file, name, depth = 0) => {
    for (const one of depth > 9 ? [] : statements(file).filter(({ exported }) => exported)) {
      const passed = one.names.find((other) => other.split(/\s+as\s+/).at(-1) === name);
      if (passed) return origin(one.target, passed.split(/\s+as\s+/)[0] ?? name, depth + 1);
    }
    return file;
  };
  /** @type {Imports} */
  const imports = new Map();
  for (const file of files) {
    const of = new Map();
    for (const { exported, names, target } of statements(file)) {
      if (exported) continue;
      const plain = names.map((name) => name.split(/\s+as\s+/)[0] ?? name);
      if (plain.length === 0) of.set(target, relative(dirname(file), target));
      for (const name of plain) of.set(origin(target, name), name);
    }
    of.delete(file);
    imports.set(file, of);
  }
  return imports;
}

/** Files that import one another, directly or over others: the strongly connected components (Tarjan). @param {Imports} imports */
function circles(imports) {
  /** @type {string[][]} */
  const all = [];
  /** @type {Map<string, { number: number, lowest: number }>} */
  const places = new Map();
  /** @type {string[]} */
  const open = [];
  /** @param {string} file */
  const visit = (file) => {
    const place = { number: places.size, lowest: places.size };
    places.set(file, place);
    open.push(file);
    for (const next of imports.get(file)?.keys() ?? []) {
      if (!imports.has(next)) continue;
      const before = places.get(next);
      if (!before) place.lowest = Math.min(place.lowest, visit(next).lowest);
      else if (open.includes(next)) place.lowest = Math.min(place.lowest, before.number);
    }
    if (place.lowest === place.number) all.push(open.splice(open.indexOf(file)));
    return place;
  };
  for (const file of imports.keys()) if (!places.has(file)) visit(file);
  return all.filter((files) => files.length > 1);
}

/** The shortest way from one file to another. @param {Imports} imports @param {string} from @param {string} to @returns {string[]} */
function way(imports, from, to) {
  const before = new Map([[from, '']]);
  for (const file of before.keys()) {
    if (file === to) break;
    for (const next of imports.get(file)?.keys() ?? []) if (!before.has(next)) before.set(next, file);
  }
  const files = [];
  for (let file = before.has(to) ? to : ''; file; file = before.get(file) ?? '') files.unshift(file);
  return files;
}

/** A way with the names by which each file imports the next. @param {Imports} imports @param {string[]} files */
function described(imports, files) {
  const names = files.map((file, index) => imports.get(file)?.get(files[index + 1] ?? ''));
  return `    ${files.map((file, index) => (names[index] === undefined ? file : `${file} (${names[index]})`)).join(' → ')}`;
}

/** Reports the circles that pass through several folders, each as its shortest instances. @param {Imports} imports @param {string} remedy */
function checkCircles(imports, remedy) {
  for (const files of circles(imports)) {
    const folders = [...new Set(files.map((file) => dirname(file)))].sort();
    if (folders.length === 1) continue;
    /** @type {Map<string, string[]>} */
    const shortest = new Map();
    for (const file of files) {
      for (const next of imports.get(file)?.keys() ?? []) {
        if (!files.includes(next) || dirname(next) === dirname(file)) continue;
        const around = [file, ...way(imports, next, file)];
        shortest.set([...around.slice(1)].sort().join(), around);
      }
    }
    const few = [...shortest.values()].sort((one, other) => one.length - other.length).slice(0, 6);
    const ways = few.map((files) => described(imports, files)).join('\n');
    problems.push(`${files.sort()[0]}: ${files.length} files of ${folders.length} folders import one another (${folders.join(', ')}); ${remedy}:\n${ways}`);
  }
}

/** The sections of a manifest that list dependencies: `dependencies`, `dev-dependencies` and so on, of any target. @param {string} path */
function dependencies(path) {
  const all = [];
  let section = '';
  for (const line of read(path).split('\n')) {
    const header = line.match(/^\[(.*)\]\s*$/)?.[1];
    if (header !== undefined) section = header;
    const [, kind, name] = section.match(/(?:^|\.)((?:dev-|build-)?dependencies)(?:\.([\w-]+))?$/) ?? [];
    const key = name ? (header === undefined ? undefined : name) : line.match(/^([\w-]+)(?:\.\w+)?\s*=/)?.[1];
    if (kind && key) all.push({ kind, name: key });
  }
  return all;
}

/** The crates under `crates/` in the list of folders of docs/architecture.md, in its order. */
function documentedCrates() {
  const lines = existsSync(join(root, 'docs/architecture.md')) ? read('docs/architecture.md').split('\n') : [];
  const start = lines.findIndex((line) => /^\s+crates\/(\s|$)/.test(line));
  const indent = lines[start]?.match(/^\s*/)?.[0].length ?? 0;
  /** @type {string[]} */
  const names = [];
  for (const line of start < 0 ? [] : lines.slice(start + 1)) {
    const depth = line.match(/^\s*/)?.[0].length ?? 0;
    if (line.trim() === '' || depth <= indent) break;
    const name = depth === indent + 2 ? line.match(/^\s*([\w-]+)\//)?.[1] : undefined;
    if (name) names.push(name);
  }
  return names;
}

/** @param {string} file */
const code = (file) => withoutTests(tokens(read(file)));

const manifests = filesIn('crates', /^Cargo\.toml$/).filter((path) => path.split('/').length === 3);
const crates = manifests.map((path) => path.split('/')[1] ?? '');

/** Crates by name: root file, folder and manifest. */
const roots = [
  ...crates.map((name) => ({ name, root: `crates/${name}/lib.rs`, folder: `crates/${name}`, manifest: `crates/${name}/Cargo.toml` })),
  { name: 'octet', root: 'src/lib.rs', folder: 'src', manifest: 'Cargo.toml' },
  ...['src/bin/octet.rs', 'src/bin/octet/main.rs'].map((file) => ({ name: 'the command line', root: file, folder: 'src/bin', manifest: '' })),
].filter((one) => existsSync(join(root, one.root)));

for (const one of roots) checkCircles(usesOfCrate(root, one.root), 'move what both sides need into a file below both');
checkCircles(importsOfPage(), 'move what both sides need into a module below both, or pass it as an argument');

const order = documentedCrates();
for (const name of crates) {
  const manifest = `crates/${name}/Cargo.toml`;
  if (!order.includes(name)) problems.push(`docs/architecture.md: the list under crates/ lacks ${name}; add it behind the crates that it depends on`);
  for (const { kind, name: other } of dependencies(manifest)) {
    const layer = other.replace(/^octet-/, '');
    const places = [layer, name].map((one) => order.indexOf(one));
    if (layer === testModels) {
      if (kind !== 'dev-dependencies' && !onlyTests.includes(name)) problems.push(`${manifest}: ${other} is for tests; move it to [dev-dependencies]`);
    } else if (other === 'octet') problems.push(`${manifest}: a layer depends on octet, which is above all layers; move what it needs into a layer`);
    else if (layer !== other && Math.min(...places) >= 0 && (places[0] ?? 0) >= (places[1] ?? 0)) {
      problems.push(`${manifest}: ${name} depends on ${layer}, which docs/architecture.md lists behind it; move what ${name} needs into a layer before it`);
    }
  }
}

for (const one of roots.filter(({ name }) => name !== 'runtime')) {
  for (const { name } of one.manifest ? dependencies(one.manifest) : []) {
    if (/^tract\b/.test(name)) problems.push(`${one.manifest}: ${name} is a dependency; only crates/runtime may name tract, so ask it for what you need`);
  }
}
const rust = ['crates', 'src'].flatMap((folder) => filesIn(folder, /\.rs$/));
for (const file of rust.filter((path) => !path.startsWith('crates/runtime/'))) {
  const word = tokens(read(file)).find(({ kind, text }) => kind === 'word' && /^tract(_\w+)?$/.test(text));
  if (word) problems.push(`${file}: the code names ${word.text}; only crates/runtime may name tract, so ask it for what you need`);
}

for (const one of roots) {
  const files = filesIn(one.folder, /\.rs$/).filter((file) => !file.includes('/tests/') && (one.name !== 'octet' || !file.startsWith('src/bin/')));
  const unsafe = files.find((file) => tokens(read(file)).some(({ kind, text }) => kind === 'word' && text === 'unsafe'));
  if (!unsafe && !/^#!\[forbid\(unsafe_code\)\]/m.test(read(one.root))) problems.push(`${one.root}: ${one.name} has no unsafe code and does not forbid it; add #![forbid(unsafe_code)]`);
}

const operators = new Set(Object.values(JSON.parse(readFileSync(new URL('operator-names.json', import.meta.url), 'utf8'))).flat());
const isOwn = (/** @type {string} */ file) => operatorFolders.some((folder) => file.startsWith(folder));
const testFiles = new Set(roots.flatMap((one) => testFilesOfCrate(root, one.root)));
const isTest = (/** @type {string} */ file) => /(^|\/)tests(\/|\.rs$)/.test(file) || file.startsWith(`crates/${testModels}/`) || testFiles.has(file);
/** The number of operators that a file names. @param {string} file */
const operatorsOf = (file) => new Set(code(file).filter(({ kind, text }) => kind === 'text' && operators.has(text)).map(({ text }) => text)).size;
const counts = rust.filter((file) => !isOwn(file) && !isTest(file)).map((file) => ({ file, count: operatorsOf(file) }));
const naming = counts.filter(({ count }) => count >= many).sort((one, other) => other.count - one.count);
const lines = naming.map(({ file, count }) => `    ${String(count).padStart(3)} ${file}`).join('\n');
if (list) console.log(`${naming.length} files name ${many} operators or more; at most ${mostFiles} may:\n${lines}`);
if (naming.length > mostFiles) problems.push(`${naming[0]?.file}: ${naming.length} files name ${many} operators or more, and at most ${mostFiles} may; ask a property of the descriptor in crates/graph/operators/ instead of names:\n${lines}`);

for (const problem of problems) console.error(problem);
if (problems.length > 0) {
  console.error(`${problems.length} places that leave the structure (docs/architecture.md)`);
  process.exit(1);
}
