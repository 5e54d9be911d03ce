// Reads wasm-pack.toml. It supports only the TOML which that file needs (tables, strings, booleans,
// lists of strings, comments) and reports anything else with its line.

import { readFileSync } from 'node:fs';

/**
 * @typedef {object} Variant
 * @property {string} name
 * @property {string} package the crate that is built
 * @property {string} target the variant whose target folder it shares, since the flags are equal
 * @property {boolean} threads whether the build has a shared memory and a thread pool
 * @property {string[]} cargoFeatures
 * @property {string[]} targetFeatures
 * @property {string[]} linkArgs
 * @property {string[]} cfg
 */

/** Keys of a variant. All but `target` are required. */
const keys = ['package', 'target', 'threads', 'cargo-features', 'target-features', 'link-args', 'cfg'];

/** @param {string} text @param {string} where @returns {unknown} */
function value(text, where) {
  if (text === 'true' || text === 'false') return text === 'true';
  const string = /^"([a-z0-9-]+)"$/.exec(text);
  if (string) return string[1];
  const list = /^\[(.*)\]$/s.exec(text);
  if (!list) throw new Error(`${where}: "${text}" is neither true, false nor a list of strings, nor a name`);
  const strings = /\s*(?:"([^"\\]*)"|'([^']*)')\s*(?:,|$)/gy;
  const found = [];
  let end = 0;
  for (let item; (item = strings.exec(list[1])) && item[0] !== ''; end = strings.lastIndex) {
    found.push(item[1] ?? item[2]);
  }
  if (list[1].slice(end).trim() !== '') throw new Error(`${where}: not a list of plain strings: ${text}`);
  return found;
}

/** @param {URL | string} file @returns {Variant[]} */
export function readVariants(file) {
  /** @type {Map<string, Record<string, any>>} */
  const tables = new Map();
  const lines = readFileSync(file, 'utf8').split('\n').map((line) => line.replace(/^\s*#.*$/, '').trim());
  /** @type {Record<string, any> | undefined} */
  let table;
  for (let i = 0; i < lines.length; i += 1) {
    const where = `wasm-pack.toml, line ${i + 1}`;
    if (lines[i] === '') continue;
    const head = /^\[variants\.([a-z0-9-]+)\]$/.exec(lines[i]);
    if (head) {
      if (tables.has(head[1])) throw new Error(`${where}: variant "${head[1]}" stands twice`);
      tables.set(head[1], (table = {}));
      continue;
    }
    const pair = /^([a-z-]+)\s*=\s*(.*)$/.exec(lines[i]);
    if (!pair || !table) throw new Error(`${where}: not understood: ${lines[i]}`);
    if (!keys.includes(pair[1])) throw new Error(`${where}: unknown key "${pair[1]}"; known: ${keys.join(', ')}`);
    let text = pair[2];
    while (text.startsWith('[') && !text.endsWith(']') && i + 1 < lines.length) text += lines[(i += 1)];
    table[pair[1]] = value(text, where);
  }
  return [...tables].map(([name, entries]) => {
    const missing = keys.filter((key) => key !== 'target' && !(key in entries));
    if (missing.length > 0) throw new Error(`wasm-pack.toml: variant "${name}" lacks ${missing.join(', ')}`);
    return {
      name,
      package: entries.package,
      target: entries.target ?? name,
      threads: entries.threads,
      cargoFeatures: entries['cargo-features'],
      targetFeatures: entries['target-features'],
      linkArgs: entries['link-args'],
      cfg: entries.cfg,
    };
  });
}

/** The compiler's flags for a variant. @param {Variant} variant @param {string[]} first @returns {string} */
export function rustFlags(variant, first = []) {
  return [
    ...first,
    `-C target-feature=${variant.targetFeatures.map((feature) => `+${feature}`).join(',')}`,
    ...variant.linkArgs.map((argument) => `-C link-arg=${argument}`),
    ...variant.cfg.map((name) => `--cfg ${name}`),
  ].join(' ');
}
