// The modules of a Rust crate: its files, and the files whose items each of them uses. A name that is
// imported through `pub use` counts as a use of the file that defines it. Tests don't count.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** @typedef {{ kind: 'word' | 'text' | 'mark', text: string }} Token a word, the content of a string literal, or a punctuation mark */
/** @typedef {{ path: string[], name: string, glob: boolean, exported: boolean }} Import one name of a `use` declaration */
/**
 * @typedef {object} Module
 * @property {string} file
 * @property {Module | null} parent
 * @property {Map<string, Module>} children
 * @property {Set<string>} items names that it defines
 * @property {Import[]} imports
 * @property {string[][]} paths paths in its code, such as `super::x::f`
 * @property {Set<string>} words all words of its code
 */

const string = /^(?:b|c)?"((?:[^"\\]|\\[\s\S])*)"|^(?:b|c)?r(#*)"([\s\S]*?)"\2/;
const character = /^b?'(?:\\(?:[^u]|u\{[^}]*\})[0-9a-fA-F]*|[^\\'])'/u;

/** The tokens of a source text, without comments, lifetimes and characters. @param {string} source @returns {Token[]} */
export function tokens(source) {
  /** @type {Token[]} */
  const all = [];
  let at = 0;
  while (at < source.length) {
    const rest = source.slice(at, at + 200);
    const space = rest.match(/^\s+/);
    if (space) at += space[0].length;
    else if (rest.startsWith('//')) at = (source.indexOf('\n', at) + 1) || source.length;
    else if (rest.startsWith('/*')) at = endOfComment(source, at);
    else {
      const literal = /^(?:b|c)?r?#*"/.test(rest) ? source.slice(at).match(string) : null;
      const word = rest.match(/^(?:r#)?([\p{L}_][\p{L}\p{N}_]*)/u);
      const quoted = rest.match(character) ?? rest.match(/^'\w+/);
      if (literal) [all[all.length], at] = [{ kind: 'text', text: literal[1] ?? literal[3] ?? '' }, at + literal[0].length];
      else if (quoted) at += quoted[0].length;
      else if (word) [all[all.length], at] = [{ kind: 'word', text: word[1] ?? '' }, at + word[0].length];
      else if (/^\d/.test(rest)) at += rest.match(/^\w+/)?.[0].length ?? 1;
      else {
        const mark = rest.startsWith('::') ? '::' : String.fromCodePoint(rest.codePointAt(0) ?? 0);
        all.push({ kind: 'mark', text: mark });
        at += mark.length;
      }
    }
  }
  return all;
}

/** @param {string} source @param {number} at */
function endOfComment(source, at) {
  let depth = 0;
  for (const mark of source.slice(at).matchAll(/\/\*|\*\//g)) {
    depth += mark[0] === '/*' ? 1 : -1;
    if (depth === 0) return at + mark.index + 2;
  }
  return source.length;
}

/** The place behind the bracket that closes the one at this place. @param {Token[]} code @param {number} at */
function closed(code, at) {
  let depth = 0;
  for (; at < code.length; at++) {
    const { kind, text } = code[at] ?? { kind: 'mark', text: '' };
    if (kind !== 'mark') continue;
    if ('([{'.includes(text)) depth++;
    if (')]}'.includes(text) && --depth === 0) return at + 1;
  }
  return at;
}

/** The place behind the item or statement at this place. @param {Token[]} code @param {number} at */
function behindItem(code, at) {
  const keyword = /^(const|static|type|use|let|fn|impl|struct|enum|union|trait|mod)$/;
  const first = code.findIndex((token, index) => index >= at && token.kind === 'word' && keyword.test(token.text));
  const value = /^(const|static|type|use|let)$/.test(code[first]?.text ?? '') && !/^(fn|unsafe|async|extern)$/.test(code[first + 1]?.text ?? '');
  for (; at < code.length; at++) {
    const token = code[at];
    if (!token) break;
    if (token.kind !== 'mark') continue;
    if (token.text === ';') return at + 1;
    if (token.text === '}') return at; // the end of what encloses it
    if (token.text === '{' && !value) return closed(code, at);
    if ('([{'.includes(token.text)) at = closed(code, at) - 1;
  }
  return at;
}

/** Removes what is compiled in tests only, and all attributes. @param {Token[]} code @returns {Token[]} */
export const withoutTests = (code) => withoutAttributes(code, false);

/** Removes all attributes; without `tests` also what is compiled in tests only. @param {Token[]} code @param {boolean} tests @returns {Token[]} */
function withoutAttributes(code, tests) {
  /** @type {Token[]} */
  const remaining = [];
  for (let at = 0; at < code.length;) {
    const inner = code[at + 1]?.text === '!' ? 2 : 1;
    if (code[at]?.text !== '#' || code[at]?.kind !== 'mark' || code[at + inner]?.text !== '[') {
      remaining.push(/** @type {Token} */ (code[at++]));
      continue;
    }
    const end = closed(code, at + inner);
    const words = code.slice(at + inner + 1, end).filter((token) => token.kind === 'word').map((token) => token.text);
    const only = !tests && (words[0] === 'cfg' && words.includes('test') && !words.includes('not') && !words.includes('any') || words.join() === 'test');
    at = end;
    while (only && code[at]?.text === '#') at = closed(code, at + 1);
    if (only) at = behindItem(code, at);
  }
  return remaining;
}

/** The names of a `use` declaration, from behind the word to the semicolon. @param {Token[]} code @returns {Omit<Import, 'exported'>[]} */
function importsOf(code) {
  let at = 0;
  /** @param {string[]} before @returns {Omit<Import, 'exported'>[]} */
  const tree = (before) => {
    const path = [...before];
    for (;;) {
      const token = code[at++];
      if (!token || token.text === ',' || token.text === '}') return named(path);
      if (token.text === '::') continue;
      if (token.text === '*') return [{ path, name: '*', glob: true }];
      if (token.text === 'as') return [{ ...one(path), name: code[at++]?.text ?? '_' }];
      if (token.text !== '{') path.push(token.text);
      else {
        const all = [];
        while (code[at] && code[at]?.text !== '}') {
          all.push(...tree(path));
          if (code[at]?.text === ',') at++;
          else if (code[at - 1]?.text === '}') return all;
        }
        at++;
        return all;
      }
    }
  };
  /** @param {string[]} path */
  const one = (path) => {
    const whole = path.at(-1) === 'self' && path.length > 1 ? path.slice(0, -1) : path;
    return { path: whole, name: whole.at(-1) ?? '', glob: false };
  };
  /** @param {string[]} path */
  const named = (path) => (path.length > 0 ? [one(path)] : []);
  return tree([]);
}

/** Reads a file as a module, and the files of its children. @param {string} root @param {string} file @param {string} folder of its children @param {Module | null} parent @param {boolean} tests true to read what is compiled in tests only @returns {Module} */
function read(root, file, folder, parent, tests) {
  const source = readFileSync(join(root, file), 'utf8');
  return parse(root, file, folder, parent, withoutAttributes(tokens(source), tests), paths(source), tests);
}

/** The files of `#[path = "…"] mod name;`. @param {string} source */
const paths = (source) => new Map([...source.matchAll(/#\[path = "([^"]*)"\]\s*(?:pub(?:\([^)]*\))? )?mod (\w+)/g)].map(([, path, name]) => [name ?? '', path ?? '']));

/** @param {string} root @param {string} file @param {string} folder @param {Module | null} parent @param {Token[]} code @param {Map<string, string>} elsewhere @param {boolean} tests @returns {Module} */
function parse(root, file, folder, parent, code, elsewhere, tests) {
  /** @type {Module} */
  const module = { file, parent, children: new Map(), items: new Set(), imports: [], paths: [], words: new Set() };
  let [at, depth, exported] = [0, 0, false];
  while (at < code.length) {
    const token = /** @type {Token} */ (code[at]);
    const next = code[at + 1]?.text ?? '';
    const before = code[at - 1]?.text ?? '';
    if (token.kind === 'mark') {
      depth += '([{'.includes(token.text) ? 1 : ')]}'.includes(token.text) ? -1 : 0;
      at++;
    } else if (token.kind === 'text') at++;
    else if (token.text === 'pub') {
      at = next === '(' ? closed(code, at + 1) : at + 1;
      exported = true;
      continue; // up to the word behind it
    } else if (token.text === 'use' && /^([;{}]|)$/.test(before) || token.text === 'use' && exported) {
      const end = code.findIndex((one, index) => index > at && one.text === ';');
      for (const one of importsOf(code.slice(at + 1, end))) module.imports.push({ ...one, exported });
      at = end + 1;
    } else if (token.text === 'mod' && depth === 0 && /^[;{]$/.test(code[at + 2]?.text ?? '')) {
      const inline = code[at + 2]?.text === '{';
      const end = inline ? closed(code, at + 2) : at + 3;
      const within = join(folder, next);
      const path = elsewhere.get(next);
      const files = path ? [join(dirname(file), path)] : [`${within}.rs`, join(within, 'mod.rs')];
      const child = inline ? file : files.find((name) => existsSync(join(root, name)));
      if (inline) module.children.set(next, parse(root, file, within, module, code.slice(at + 3, end - 1), new Map(), tests));
      else if (child) module.children.set(next, read(root, child, path ? dirname(child) : within, module, tests));
      at = end;
    } else {
      if (depth === 0 && /^(struct|enum|union|trait|type|fn|const|static)$/.test(token.text) && /^\w/.test(next)) module.items.add(next === 'mut' ? code[at + 2]?.text ?? '' : next);
      if (token.text === 'macro_rules') module.items.add(code[at + 2]?.text ?? '');
      const path = [token.text];
      while (code[at + 1]?.text === '::' && code[at + 2]?.kind === 'word') [path[path.length], at] = [code[at + 2]?.text ?? '', at + 2];
      if (before !== '::' && before !== '.') module.words.add(token.text);
      if (path.length > 1 && before !== '::') module.paths.push(path);
      at++;
    }
    exported = false;
  }
  return module;
}

/** The module or the defining file of a path, as this module sees it; `null` for other crates. @param {Module} module @param {string[]} path @param {Set<string>} [visited] @returns {Module | string | null} */
function resolve(module, path, visited = new Set()) {
  const [first = '', ...rest] = path;
  if (first === 'crate') return within(rootOf(module), rest, visited);
  if (first === 'self') return within(module, rest, visited);
  if (first === 'super') return module.parent && (rest[0] === 'super' ? resolve(module.parent, rest, visited) : within(module.parent, rest, visited));
  return within(module, path, visited, true);
}

/** @param {Module} module @returns {Module} */
const rootOf = (module) => (module.parent ? rootOf(module.parent) : module);

/** @param {Module} module @param {string[]} path @param {Set<string>} visited @param {boolean} [open] true if the name may be of another crate @returns {Module | string | null} */
function within(module, path, visited, open = false) {
  const [name, ...rest] = path;
  if (name === undefined) return module;
  const key = `${module.file} ${[...module.children.keys()].join()} ${path.join('::')}`;
  if (visited.has(key)) return null;
  visited.add(key);
  const child = module.children.get(name);
  if (child && rest.length > 0) return within(child, rest, visited);
  if (module.items.has(name)) return module.file;
  for (const one of module.imports.filter((one) => !one.glob && one.name === name)) {
    const target = resolve(module, one.path, visited);
    if (target && typeof target === 'object' && rest.length > 0) return within(target, rest, visited);
    if (target) return target;
    if (one.path.join() !== name) return null; // of another crate
  }
  if (child) return child;
  for (const one of module.imports.filter((one) => one.glob)) {
    const target = resolve(module, one.path, visited);
    const defining = target && typeof target === 'object' ? within(target, path, visited, true) : null;
    if (defining) return defining;
  }
  return open ? null : module.file; // defined by a macro
}

/**
 * For each file of a crate, the files whose items it uses, each with a path that does so.
 *
 * @param {string} root the folder of all crates
 * @param {string} file the crate's root file
 * @returns {Map<string, Map<string, string>>}
 */
export function usesOfCrate(root, file) {
  /** @type {Map<string, Map<string, string>>} */
  const uses = new Map();
  /** @param {Module} module */
  const visit = (module) => {
    const of = uses.get(module.file) ?? new Map();
    uses.set(module.file, of);
    /** @param {Module | string | null} target @param {string[]} path */
    const use = (target, path) => {
      if (typeof target === 'string' && target !== module.file && !of.has(target)) of.set(target, path.join('::'));
    };
    for (const one of module.imports) {
      if (one.glob) {
        const target = resolve(module, one.path);
        if (typeof target === 'string') use(target, one.path); // the variants of an enum
        if (!target || typeof target === 'string') continue;
        for (const word of module.words) if (!module.items.has(word) && !module.imports.some((other) => other.name === word)) use(within(target, [word], new Set(), true), [...one.path, word]);
      } else if (!one.exported || module.words.has(one.name)) use(resolve(module, one.path), one.path);
    }
    for (const path of module.paths) use(resolve(module, path), path);
    for (const child of module.children.values()) visit(child);
  };
  visit(read(root, file, dirname(file), null, false));
  return uses;
}

/**
 * The files of a crate that are compiled in tests only: modules behind `#[cfg(test)]`, and theirs.
 *
 * @param {string} root the folder of all crates
 * @param {string} file the crate's root file
 */
export function testFilesOfCrate(root, file) {
  /** @param {Module} module @returns {string[]} */
  const files = (module) => [module.file, ...[...module.children.values()].flatMap(files)];
  const compiled = new Set(files(read(root, file, dirname(file), null, false)));
  return files(read(root, file, dirname(file), null, true)).filter((one) => !compiled.has(one));
}
