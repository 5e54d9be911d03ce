// In Chromium: the ten lines unbundled, in a worker, from another origin, and built by Vite, webpack
// and esbuild. Each gives the bytes that Node gives.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch } from '../../scripts/browsers.mjs';
import { checkout, inNode, project, write } from './installed.mjs';
import { load, model, program, tell } from './programs.mjs';
import { resultAt } from './result.mjs';
import { isolated, serveFolder, shared } from './static.mjs';

/** @type {import('puppeteer-core').Browser} */
let browser;
/** The result in Node. @type {any} */
let expected;

const unbundled = '/node_modules/octet-onnx/dist/index.js';

before(async () => {
  write('exact.onnx', model);
  expected = JSON.parse(inNode());
  browser = await launch('chromium');
});
after(() => browser?.close());

/** The address of a page that loads a module. @param {string} name @param {string} script */
function pageOf(name, script) {
  write(`${name}.html`, `<!doctype html><meta charset="utf-8"><title>${name}</title><script type="module" src="${script}"></script>`);
  return `/${name}.html`;
}

/**
 * Opens a page of a folder and waits for its result.
 *
 * @param {string} path
 * @param {{ folder?: string, headers?: Record<string, string> }} [options]
 */
async function visit(path, { folder = project(), headers = isolated } = {}) {
  const server = await serveFolder(folder, headers);
  try {
    return await resultAt(browser, server.url + path);
  } finally {
    await server.close();
  }
}

/** @param {any} result @param {boolean} [threads] */
function same(result, threads = true) {
  const { isolated: shares, ...rest } = result;
  assert.equal(shares, threads);
  assert.deepEqual(rest, expected);
}

test('a plain module script quantizes, with threads and without', async () => {
  write('plain.js', program(unbundled, tell, load));
  const path = pageOf('plain', '/plain.js');
  same(await visit(path));
  same(await visit(path, { headers: {} }), false);
});

test('a worker of a page quantizes', async () => {
  write('inner.js', program(unbundled, 'postMessage({ ...result, isolated: crossOriginIsolated });', load));
  write('outer.js', "new Worker('/inner.js', { type: 'module' }).onmessage = ({ data }) => (globalThis.result = data);\n");
  same(await visit(pageOf('outer', '/outer.js')));
});

test('a page takes the package from another origin', async () => {
  const cdn = await serveFolder(join(project(), 'node_modules'), shared);
  try {
    write('remote.js', program(`${cdn.url}/octet-onnx/dist/index.js`, tell, load));
    const path = pageOf('remote', '/remote.js');
    same(await visit(path));
    same(await visit(path, { headers: {} }), false);
  } finally {
    await cdn.close();
  }
});

const tools = execFileSync(join(checkout, 'scripts', 'package-tools.sh'), { encoding: 'utf8' }).trim();
const tool = createRequire(join(tools, 'package.json'));

/** A project of its own with the package and an entry. @param {string} name @param {string} [before] lines before the program */
function bundled(name, before = '') {
  const entry = write(`${name}/main.js`, before + program('octet-onnx', tell, load));
  const folder = dirname(entry);
  write(`${name}/package.json`, '{ "private": true, "type": "module" }\n');
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(join(project(), 'node_modules', 'octet-onnx'), join(folder, 'node_modules', 'octet-onnx'), 'dir');
  mkdirSync(join(folder, 'built'), { recursive: true });
  cpSync(join(project(), 'exact.onnx'), join(folder, 'built', 'exact.onnx'));
  return folder;
}

test('Vite builds it, and the worker and the wasm files are part of the site', async () => {
  const folder = bundled('vite');
  write('vite/index.html', '<!doctype html><meta charset="utf-8"><title>vite</title><script type="module" src="/main.js"></script>');
  const { build } = await import(tool.resolve('vite').replace(/index\.cjs$/, 'dist/node/index.js'));
  await build({ root: folder, logLevel: 'error', configFile: false, build: { outDir: 'built', emptyOutDir: false, target: 'es2022' } });
  same(await visit('/index.html', { folder: join(folder, 'built') }));
});

test('webpack builds it, and the worker and the wasm files are part of the site', async () => {
  const folder = bundled('webpack');
  const webpack = tool('webpack');
  const configuration = { mode: 'production', context: folder, entry: './main.js', target: 'web', experiments: { outputModule: true, topLevelAwait: true }, output: { path: join(folder, 'built'), filename: 'main.js', module: true, publicPath: 'auto' } };
  const stats = await new Promise((done, failed) => webpack(configuration, (/** @type {any} */ error, /** @type {any} */ result) => (error ? failed(error) : done(result))));
  assert.ok(!stats.hasErrors(), stats.toString());
  assert.ok(readdirSync(join(folder, 'built')).some((name) => name.endsWith('.wasm')));
  write('webpack/built/index.html', '<!doctype html><meta charset="utf-8"><title>webpack</title><script type="module" src="/main.js"></script>');
  same(await visit('/index.html', { folder: join(folder, 'built') }));
});

test('esbuild builds it, with the files copied beside the site', async () => {
  const folder = bundled('esbuild', "import { startEngine } from 'octet-onnx';\nstartEngine({ folder: '/octet/' });\n");
  await tool('esbuild').build({ entryPoints: [join(folder, 'main.js')], outfile: join(folder, 'built', 'main.js'), bundle: true, format: 'esm', target: 'es2022', logLevel: 'error' });
  cpSync(join(project(), 'node_modules', 'octet-onnx', 'dist'), join(folder, 'built', 'octet'), { recursive: true });
  write('esbuild/built/index.html', '<!doctype html><meta charset="utf-8"><title>esbuild</title><script type="module" src="/main.js"></script>');
  same(await visit('/index.html', { folder: join(folder, 'built') }));
});

test('a bundle of one function leaves the others out', async () => {
  const folder = bundled('shaken');
  const size = async (/** @type {string} */ text) => {
    const { outputFiles } = await tool('esbuild').build({ stdin: { contents: text, resolveDir: folder }, bundle: true, write: false, format: 'esm', target: 'es2022', minify: true, logLevel: 'error' });
    return outputFiles[0].text.length;
  };
  assert.ok(await size("import 'octet-onnx';") < 100);
  const all = await size("export * from 'octet-onnx';");
  const runtime = await size("export { createSession } from 'octet-onnx/runtime';");
  assert.ok(runtime < all, `${runtime} of ${all} bytes`);
});
