// A Next project (tests/package/next) with the package: `next build`, `next start`, and the ten
// lines in Chromium. They give the bytes that Node gives.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch } from '../../scripts/browsers.mjs';
import { checkout, inNode, project } from './installed.mjs';
import { load, model, program, tell } from './programs.mjs';
import { resultAt } from './result.mjs';

/** Next takes no file outside the folder of its lock, so the project is made inside. */
const tools = execFileSync(join(checkout, 'scripts', 'package-tools.sh'), ['tests/package/next'], { encoding: 'utf8' }).trim();
const folder = mkdtempSync(join(tools, 'project-'));
const next = join(tools, 'node_modules', 'next', 'dist', 'bin', 'next');
const env = /** @type {NodeJS.ProcessEnv} */ ({ ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' });

/** @type {import('puppeteer-core').Browser} */
let browser;

before(async () => {
  const source = join(checkout, 'tests', 'package', 'next');
  for (const name of ['app', 'next.config.mjs']) cpSync(join(source, name), join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  writeFileSync(join(folder, 'app', 'ten-lines.js'), program('octet-onnx', tell, load));
  mkdirSync(join(folder, 'public'));
  writeFileSync(join(folder, 'public', 'exact.onnx'), model);
  cpSync(join(project(), 'node_modules', 'octet-onnx'), join(folder, 'node_modules', 'octet-onnx'), { recursive: true });
  browser = await launch('chromium');
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the built site. @returns {Promise<{ url: string, close: () => Promise<unknown> }>} */
async function start() {
  const server = spawn(process.execPath, [next, 'start', '--port', '0', '--hostname', 'localhost'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = new Promise((over) => server.once('exit', over));
  const url = await new Promise((known, failed) => {
    let said = '';
    const hear = (/** @type {Buffer} */ text) => {
      said += text;
      const address = /Local:\s+(http:\S+)/.exec(said);
      if (address && said.includes('Ready')) known(address[1]);
    };
    server.stdout.on('data', hear);
    server.stderr.on('data', hear);
    void closed.then(() => failed(new Error(`next start ended: ${said}`)));
  });
  return { url, close: () => (server.kill(), closed) };
}

test('Next builds it, and the worker and the wasm files are part of the site', async () => {
  execFileSync(process.execPath, [next, 'build'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const site = await start();
  try {
    const { isolated, ...result } = await resultAt(browser, site.url);
    assert.equal(isolated, true);
    assert.deepEqual(result, JSON.parse(inNode()));
  } finally {
    await site.close();
  }
});
