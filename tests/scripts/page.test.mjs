// index.html preloads the page's scripts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

/**
 * All modules imported by one, directly or indirectly.
 *
 * @param {string} file
 * @param {Set<string>} [found]
 */
function reached(file, found = new Set()) {
  for (const [, path] of readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^'"]*?['"](\.[^'"]+)['"];$/gm)) {
    const next = normalize(join(dirname(file), path)).replaceAll('\\', '/');
    if (found.has(next)) continue;
    found.add(next);
    reached(next, found);
  }
  return found;
}

test('every module of the page is asked for at once, and no other', () => {
  const page = readFileSync('index.html', 'utf8');
  const listed = [...page.matchAll(/<link rel="modulepreload" href="([^"]+)"/g)].map(([, file]) => file);
  assert.deepEqual([...listed].sort(), [...reached('www/main.js')].sort());
});
