// What index.html and the other pages load at start: links to styles, and preloads of all modules that main.js and the
// features at start import. Without them a browser would ask for import after import.
//
//   node scripts/preload.mjs [--check]
//
// Writes the lines between the two marks in each page; --check fails if they differ.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { features } from '../www/features/list.js';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
/** The pages of the studio. */
export const pages = ['index.html', 'embed.html', 'hub.html'];

const marks = ['    <!-- Written by scripts/preload.mjs. -->\n', '    <!-- The end of what scripts/preload.mjs writes. -->\n'];
const imports = /^(?:import|export)\b[^'"]*?['"](\.[^'"]+)['"];$/gm;

/** Files that a module imports at once. @param {string} file */
export function imported(file) {
  const text = readFileSync(join(checkout, file), 'utf8');
  return [...text.matchAll(imports)].map(([, path]) => posix.join(posix.dirname(file), path));
}

/**
 * Some modules and all that they import.
 *
 * @param {string[]} files
 * @param {Set<string>} [all]
 */
export function closure(files, all = new Set()) {
  for (const file of files) {
    if (all.has(file)) continue;
    all.add(file);
    closure(imported(file), all);
  }
  return all;
}

/** The style sheet and the view of a feature. @param {string} name */
export const filesOf = (name) => ({ style: `www/features/${name}/style.css`, view: `www/features/${name}/view.js` });

/** Modules that load at start, in the order of their paths. */
export function modulesAtStart() {
  const views = features.filter(({ load, onDemand }) => load && !onDemand).map(({ name }) => filesOf(name).view);
  return [...closure(['www/main.js', ...views])].filter((file) => file !== 'www/main.js').sort();
}

/** Style sheets that load at start: what panels share, then those of the features in their order. */
export function stylesAtStart() {
  const own = features.filter(({ style, onDemand }) => style && !onDemand).map(({ name }) => filesOf(name).style);
  return ['www/style.css', 'www/studio/style.css', ...own];
}

/** The lines between the marks. */
function lines() {
  const styles = stylesAtStart().map((file) => `    <link rel="stylesheet" href="${file}" />\n`);
  const modules = modulesAtStart().map((file) => `    <link rel="modulepreload" href="${file}" />\n`);
  return [...styles, '    <script type="module" src="www/main.js"></script>\n', ...modules].join('');
}

/** The page with the lines as they must be. @param {string} page @param {string} [name] */
export function written(page, name = 'index.html') {
  const [begin, end] = marks.map((mark) => page.indexOf(mark));
  if (begin < 0 || end < begin) throw new Error(`${name} has no “${marks[begin < 0 ? 0 : 1].trim()}”.`);
  return page.slice(0, begin + marks[0].length) + lines() + page.slice(end);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const missing = [...stylesAtStart(), ...modulesAtStart()].filter((file) => !existsSync(join(checkout, file)));
  if (missing.length > 0) throw new Error(`There is no ${missing.join(', ')}.`);
  for (const name of pages) {
    const path = join(checkout, name);
    const page = readFileSync(path, 'utf8');
    const wanted = written(page, name);
    if (page === wanted) continue;
    if (process.argv.includes('--check')) {
      console.error(`preload: ${name} lists other files than the page loads at start; node scripts/preload.mjs writes them`);
      process.exitCode = 1;
    } else {
      writeFileSync(path, wanted);
    }
  }
}
