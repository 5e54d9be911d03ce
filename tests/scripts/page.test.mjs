// The files of the page: features are listed once, imports have one direction, and index.html asks
// at once for all that loads at start.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, posix } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { filesOf, imported, modulesAtStart, pages, stylesAtStart, written } from '../../scripts/preload.mjs';
import { features } from '../../www/features/list.js';

const files = readdirSync('www', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js')).map((name) => `www/${name}`);

/** Modules that a module imports at once or on demand. @param {string} file */
function allImports(file) {
  const onDemand = [...readFileSync(file, 'utf8').matchAll(/[ (]import\('(\.[^']+)'\)(?!\.)/g)].map(([, path]) => posix.join(posix.dirname(file), path));
  return [...imported(file), ...onDemand.filter((path) => path.startsWith('www/'))];
}

/** @type {Map<string, Set<string>>} */
const imports = new Map(files.map((file) => [file, new Set(allImports(file))]));

/**
 * A circle in a graph, as the names along it; empty if there is none.
 *
 * @param {Map<string, Set<string>>} graph
 * @returns {string[]}
 */
function circle(graph) {
  /** @type {Set<string>} */
  const finished = new Set();
  /** @param {string} name @param {string[]} path @returns {string[]} */
  const walk = (name, path) => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name];
    if (finished.has(name)) return [];
    for (const next of graph.get(name) ?? []) {
      const result = walk(next, [...path, name]);
      if (result.length > 0) return result;
    }
    finished.add(name);
    return [];
  };
  for (const name of graph.keys()) {
    const result = walk(name, []);
    if (result.length > 0) return result;
  }
  return [];
}

/** The folder of a module. The entry stands alone, above all others. @param {string} file */
const folderOf = (file) => (file === 'www/main.js' ? file : dirname(file));

/** The layer of a module; it imports from its own layer and from those before. @param {string} file */
function layerOf(file) {
  const layers = [/^www\/(library|answers)\//, /^www\/[^/]+$/, /^www\/state\//, /^www\/features\/[^/]+\//, /^www\/features\/list\.js$/, /^www\/studio\//];
  return file === 'www/main.js' ? layers.length : layers.findIndex((layer) => layer.test(file));
}

test('index.html and the other pages ask at once for every module and style sheet that loads at start, and no other', () => {
  for (const name of pages) {
    const page = readFileSync(name, 'utf8');
    assert.equal(page, written(page), 'node scripts/preload.mjs writes the list');
    const preloaded = [...page.matchAll(/<link rel="modulepreload" href="([^"]+)"/g)].map(([, file]) => file);
    assert.deepEqual(preloaded, modulesAtStart());
    const linked = [...page.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, file]) => file);
    assert.deepEqual(linked, stylesAtStart());
    assert.deepEqual([...linked, ...preloaded].filter((file) => !existsSync(file)), []);
  }
});

test('every folder of features is listed once, with what it holds', () => {
  const folders = readdirSync('www/features', { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  assert.deepEqual(features.map(({ name }) => name).sort(), folders.sort());
  for (const { name, place, title, load, style = false } of features) {
    const { style: sheet, view } = filesOf(name);
    assert.equal(existsSync(sheet), style, `${sheet} and the list differ`);
    if (load) assert.ok(existsSync(view) && String(load).includes(`import('./${name}/view.js')`), `${name} loads another file than ${view}`);
    else assert.equal(place, 'part', `${name} has a place, but no view to load`);
    if (place === 'tab' || place === 'side') assert.ok(title, `${name} has no title`);
  }
});

test('what loads on demand is not loaded at start', () => {
  const onDemand = features.filter((feature) => feature.onDemand);
  assert.ok(onDemand.length > 0);
  for (const { name } of onDemand) assert.ok(!modulesAtStart().includes(filesOf(name).view), `${name} is imported at start`);
  // A part has no load of its own: its style is linked, so its importers must be there at start.
  for (const { name } of features.filter(({ load, onDemand }) => !load && !onDemand)) {
    assert.ok(modulesAtStart().some((file) => file.startsWith(`www/features/${name}/`)), `no panel at start imports ${name}`);
  }
});

test('every module is reached from the entry or from a worker', () => {
  const views = features.filter(({ load }) => load).map(({ name }) => filesOf(name).view);
  const left = ['www/main.js', 'www/element.js', 'www/worker.js', 'www/features/graph/layout-worker.js', 'www/features/runtime/runtime-worker.js', ...views];
  /** @type {Set<string>} */
  const reached = new Set();
  for (let file; (file = left.pop());) {
    if (reached.has(file)) continue;
    reached.add(file);
    left.push(...imports.get(file) ?? []);
  }
  assert.deepEqual(files.filter((file) => !reached.has(file)), []);
});

test('imports go from the studio down to the library, without a circle', () => {
  for (const [file, targets] of imports) {
    for (const target of targets) {
      assert.ok(layerOf(file) >= 0, `${file} is in no layer`);
      assert.ok(layerOf(target) <= layerOf(file), `${file} imports ${target}, which is in a layer above`);
    }
  }
  assert.deepEqual(circle(imports), []);
  /** @type {Map<string, Set<string>>} */
  const folders = new Map();
  for (const [file, targets] of imports) {
    const from = folderOf(file);
    const others = [...targets].map(folderOf).filter((to) => to !== from);
    folders.set(from, new Set([...(folders.get(from) ?? []), ...others]));
  }
  assert.deepEqual(circle(folders), []);
});

test('the modules that load at start have at most 150 kB gzipped', () => {
  const sizes = modulesAtStart().map((file) => gzipSync(readFileSync(file), { level: 9 }).length);
  const sum = sizes.reduce((all, size) => all + size, 0);
  assert.ok(sizes.length > 50 && sum <= 150_000, `${sum} bytes`);
});
