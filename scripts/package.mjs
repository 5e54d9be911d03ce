#!/usr/bin/env node
// Makes the npm package as a tarball (docs/npm.md): the API in two bundles, its worker in one file,
// the wasm builds, the command line for Node, and declarations made from the JSDoc types.
//
//   node scripts/package.mjs [--out DIR]     prints the path of the tarball
//
// `make package` sets up what it needs: the wasm builds, esbuild and tsc.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const checkout = dirname(dirname(fileURLToPath(import.meta.url)));
const cache = process.env.OCTET_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'octet');
const { values } = parseArgs({ options: { out: { type: 'string', default: join(cache, 'package') } } });
const source = join(checkout, 'packages', 'npm');
const folder = join(values.out, 'octet-onnx');

/** Wasm files: the build and its name in the package. */
const wasm = [
  ['threads/octet_bg.wasm', 'dist/threads.wasm'],
  ['baseline/octet_bg.wasm', 'dist/baseline.wasm'],
  ['tokenizer/tokenizer_bg.wasm', 'dist/tokenizer.wasm'],
  ['node/node_bg.wasm', 'command/command.wasm'],
];
for (const [build] of wasm) {
  if (existsSync(join(checkout, 'pkg', build))) continue;
  console.error(`package: pkg/${build} is not built yet; make package builds it`);
  process.exit(1);
}

const tools = execFileSync(join(checkout, 'scripts', 'package-tools.sh'), { encoding: 'utf8' }).trim();
const esbuild = createRequire(join(tools, 'package.json'))('esbuild');

/**
 * Bundles one entry. `replaced` names files of other folders that give way to the package's own.
 *
 * @param {string} entry
 * @param {string} out
 * @param {Record<string, string>} replaced by the end of the path
 * @param {{ platform?: string, script?: boolean }} [options] `script`: no module, so that a tool may take it for either
 */
async function bundle(entry, out, replaced, { platform = 'browser', script = false } = {}) {
  const swap = {
    name: 'swap',
    /** @param {any} build */
    setup(build) {
      for (const [end, instead] of Object.entries(replaced)) {
        const filter = new RegExp(`${end.replaceAll('.', '\\.')}$`);
        build.onResolve({ filter }, (/** @type {{ importer: string }} */ { importer }) => (importer.startsWith(join(source, 'src', instead)) ? undefined : { path: join(source, 'src', instead) }));
      }
    },
  };
  await esbuild.build({
    entryPoints: [join(source, 'src', entry)],
    outfile: join(folder, out),
    bundle: true,
    ...(script ? { format: 'iife', define: { 'import.meta.url': 'self.location.href' } } : { format: 'esm' }),
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    platform,
    plugins: [swap],
    logLevel: 'warning',
    // wasm-bindgen repeats a snippet that several imports share.
    logOverride: { 'duplicate-object-key': 'silent' },
  });
}

const helper = 'workerHelpers.no-bundler.js';
const web = { '/environment.js': 'environment.js' };
const node = { '/environment.js': 'environment.node.js' };
const inNode = { platform: 'node' };

rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, 'dist'), { recursive: true });
mkdirSync(join(folder, 'command'));
await bundle('index.js', 'dist/index.js', web);
await bundle('runtime.js', 'dist/runtime.js', web);
await bundle('index.js', 'dist/node.js', node, inNode);
await bundle('runtime.js', 'dist/runtime.node.js', node, inNode);
await bundle('worker.js', 'dist/worker.js', { ...web, '/builds.js': 'builds.js', [helper]: 'pool.js' }, { script: true });
await bundle('node-worker.js', 'dist/node-worker.js', {}, inNode);
await bundle('command.js', 'command/octet.js', {}, inNode);
await bundle('command-worker.js', 'command/worker.js', { [helper]: 'command-pool.js' }, inNode);
chmodSync(join(folder, 'command', 'octet.js'), 0o755);
studio();
for (const [build, name] of wasm) copyFileSync(join(checkout, 'pkg', build), join(folder, name));
for (const file of ['LICENSE-APACHE', 'LICENSE-MIT']) copyFileSync(join(checkout, file), join(folder, file));
copyFileSync(join(source, 'README.md'), join(folder, 'README.md'));
const { version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
const cargo = /^version = "(.*)"$/m.exec(readFileSync(join(checkout, 'Cargo.toml'), 'utf8'))?.[1];
if (version !== cargo) throw new Error(`packages/npm/package.json has the version ${version} and Cargo.toml ${cargo}: give them the same`);
copyFileSync(join(source, 'package.json'), join(folder, 'package.json'));
declarations();
const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', values.out], { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
console.log(join(values.out, packed.filename));

/** The page for frames, which the element shows. It takes the wasm files of the package, so none is there twice. */
function studio() {
  const to = join(folder, 'studio');
  cpSync(join(checkout, 'www'), join(to, 'www'), { recursive: true, filter: (file) => !file.endsWith('.d.ts') });
  copyFileSync(join(checkout, 'embed.html'), join(to, 'embed.html'));
  for (const part of ['threads', 'baseline', 'tokenizer']) {
    cpSync(join(checkout, 'pkg', part), join(to, 'pkg', part), { recursive: true, filter: (file) => !/\.(d\.ts|wasm)$/.test(file) });
  }
  mkdirSync(join(to, 'pkg', 'vendor'), { recursive: true });
  copyFileSync(join(checkout, 'pkg', 'vendor', 'dagre.js'), join(to, 'pkg', 'vendor', 'dagre.js'));
  rewrite(join(to, 'www', 'builds.js'), { "new URL('octet_bg.wasm', folder)": 'new URL(`../../dist/${variant}.wasm`, import.meta.url)', "new URL('tokenizer_bg.wasm', folder)": "new URL('../../dist/tokenizer.wasm', import.meta.url)" });
  rewrite(join(to, 'www', 'compiled-module.js'), { '../pkg/${variant}/octet_bg.wasm': '../../dist/${variant}.wasm' });
}

/** Replaces texts of a file, each of which must be there. @param {string} file @param {Record<string, string>} texts */
function rewrite(file, texts) {
  let content = readFileSync(file, 'utf8');
  for (const [text, instead] of Object.entries(texts)) {
    if (!content.includes(text)) throw new Error(`${file} has no “${text}”: change scripts/package.mjs with it`);
    content = content.replace(text, instead);
  }
  writeFileSync(file, content);
}

/** Writes the declarations of the entries, and copies those that they use. */
function declarations() {
  const types = join(folder, 'types');
  execFileSync(join(checkout, 'node_modules', '.bin', 'tsc'), [
    '--project', join(source, 'tsconfig.json'), '--outDir', types,
  ], { stdio: ['ignore', 'inherit', 'inherit'] });
  for (const file of readdirSync(join(checkout, 'www')).filter((name) => name.endsWith('.d.ts'))) {
    mkdirSync(join(types, 'www'), { recursive: true });
    cpSync(join(checkout, 'www', file), join(types, 'www', file));
  }
  writeFileSync(join(types, 'README'), `Made from the JSDoc types by ${relative(checkout, fileURLToPath(import.meta.url))}.\n`);
}
