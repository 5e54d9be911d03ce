// Checks the words of code and documents: part of `make lint` and `make test`.
//
//   - A doc comment opens with a subject, not with a relative clause.
//   - A sentence of the documents has at most 30 words; a line has at most 100 columns.
//   - No type name of the Rust code is declared twice.
//   - Names that docs/glossary.md replaced are gone.
//   - Links between documents lead to a file and to a heading.
//
// An argument is the root of another tree.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url));
const openings = /^(What|Whether|Which|Where|How|That|The same)\b/;
const longest = { sentence: 30, line: 100 };

/** Names that stood for several things, or that only this project used. */
const retired = [
  'Form', 'Writer', 'Layout', 'Parts', 'Known', 'Kind', 'Sums', 'Found', 'Made', 'Said', 'Given', 'Told',
];

/** Names of files and folders under crates, src and www that were replaced. */
const retiredPaths = /\/(guard|compensate|inlets|composed|spread|parts|moments|meeting|reach|bulk|further|wishes|team|places|stripes|holes|ticking|card|look|ready|release|sides|kept|slot|foot|tried|filling|telling|aside)(\/|\.(rs|js)$)/;

/** Type names that may be declared in several crates. */
const shared = ['Error'];

/** @param {string} folder @param {RegExp} name @returns {string[]} */
function filesIn(folder, name) {
  if (!existsSync(join(root, folder))) return [];
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && name.test(entry.name));
  const paths = files.map((entry) => relative(root, join(entry.parentPath, entry.name)));
  return paths.filter((path) => !path.includes('node_modules')).sort();
}

/** Doc comments: each with the line it begins at. @param {string} text */
function docComments(text) {
  const lines = text.split('\n');
  const found = [];
  for (const [index, line] of lines.entries()) {
    const comment = line.match(/^\s*(\/\/\/|\/\/!|\/\*\*|""")\s*(.*)/);
    const [, marker, words] = comment ?? [];
    if (!marker) continue;
    const before = (lines[index - 1] ?? '').trim();
    const continued = marker.startsWith('//') && before.startsWith(marker) && before !== marker;
    if (continued) continue;
    const opening = words || (lines[index + 1] ?? '').replace(/^\s*\*?\s*/, '');
    found.push({ line: index + 1, opening });
  }
  return found;
}

/** Paragraphs, list items and headings of a document, without code, tables and comments. @param {string} text */
function paragraphs(text) {
  const found = [];
  let code = false;
  let current = /** @type {{ line: number, words: string } | null} */ (null);
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*```/.test(line)) [code, current] = [!code, null];
    else if (code || /^( {4}|\s*$|\s*\||\s*<!--)/.test(line) && !current) current = null;
    else if (/^\s*(\||$|<!--)/.test(line)) current = null;
    else if (!current || /^\s*([-*]|\d+\.|#+|>)\s/.test(line)) found.push(current = { line: index + 1, words: line });
    else current.words += ` ${line.trim()}`;
  }
  return found;
}

/** @param {string} paragraph */
function sentences(paragraph) {
  const plain = paragraph
    .replace(/`[^`]*`/g, 'code')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*([-*]|\d+\.|#+|>)\s/, '')
    .replace(/\b(e\.g|i\.e|vs|approx|incl)\./g, '$1');
  return plain.split(/(?<=[.!?])["')*_]*\s+/);
}

/** @type {string[]} */
const problems = [];
const report = (/** @type {string} */ path, /** @type {number} */ line, /** @type {string} */ what) => problems.push(`${path}:${line}: ${what}`);

const sources = ['crates', 'patches', 'src', 'www', 'scripts', 'tests', 'benches', 'examples'].flatMap((folder) => filesIn(folder, /\.(rs|js|mjs|ts|py|sh)$/));
const documents = [...filesIn('docs', /\.md$/), 'README.md', 'CHANGELOG.md', 'SECURITY.md'].filter((path) => existsSync(join(root, path)));

/** @type {Map<string, string[]>} */
const types = new Map();
for (const path of sources) {
  // settings/guard.rs holds the public key `guard`.
  if (/^(crates|src|www)\//.test(path) && retiredPaths.test(path) && !path.endsWith('settings/guard.rs')) report(path, 1, 'this name was replaced; see docs/glossary.md');
  const text = readFileSync(join(root, path), 'utf8');
  for (const { line, opening } of docComments(text)) {
    if (openings.test(opening)) report(path, line, `the comment opens with “${opening.slice(0, 40)}”; begin with its subject`);
  }
  if (!/^(crates|src)\//.test(path)) continue;
  for (const [index, line] of text.split('\n').entries()) {
    const name = line.match(/^\s*(?:pub(?:\([a-z ]+\))? )?(?:struct|enum|trait|type|union) ([A-Z]\w*)/)?.[1];
    if (!name || /^\s*type \w+ = [^;]*;/.test(line) && !/^(pub|type)/.test(line)) continue; // a type of a trait
    types.set(name, [...(types.get(name) ?? []), `${path}:${index + 1}`]);
    if (retired.includes(name)) report(path, index + 1, `the type name ${name} is retired; say which one it is`);
  }
}
for (const [name, places] of types) {
  // One file may hold a type for each target.
  const files = new Set(places.map((place) => place.replace(/:\d+$/, '')));
  if (files.size > 1 && !shared.includes(name)) problems.push(`${places.join(', ')}: the type name ${name} is declared ${places.length} times`);
}
for (const path of documents) {
  const text = readFileSync(join(root, path), 'utf8');
  let code = false;
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*```/.test(line)) code = !code;
    if (!code && line.length > longest.line && !/^\s*\||https?:\S+$/.test(line)) report(path, index + 1, `${line.length} columns; wrap at ${longest.line}`);
  }
  for (const { line, words } of paragraphs(text)) {
    for (const sentence of sentences(words)) {
      const count = sentence.split(/\s+/).filter((word) => /\w/.test(word)).length;
      if (count > longest.sentence) report(path, line, `a sentence of ${count} words: “${sentence.slice(0, 60)}…”`);
    }
  }
}

/** The anchor of a heading, as GitHub makes it. @param {string} heading */
const anchor = (heading) => heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase().trim().replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-');
const anchors = new Map(documents.map((path) => [path, new Set(readFileSync(join(root, path), 'utf8').split('\n').filter((line) => /^#+ /.test(line)).map((line) => anchor(line.replace(/^#+ /, ''))))]));
for (const path of documents) {
  for (const [index, line] of readFileSync(join(root, path), 'utf8').split('\n').entries()) {
    for (const [, link] of line.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?|mailto):/.test(link)) continue;
      const [file, heading] = link.split('#');
      const target = file ? join(dirname(path), file) : path;
      if (!existsSync(join(root, target))) report(path, index + 1, `the link to ${link} leads nowhere`);
      else if (heading && anchors.get(target)?.has(heading) === false) report(path, index + 1, `${target} has no heading for #${heading}`);
    }
  }
}

for (const problem of problems) console.error(problem);
if (problems.length > 0) {
  console.error(`${problems.length} places to rewrite (docs/contributing.md, “Words”)`);
  process.exit(1);
}
