// hub.html against a double of Hugging Face's endpoints on another origin, with its CORS headers and
// its redirect to a host of files.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { policyOf } from '../../scripts/policies.mjs';
import { convolution, dense } from './model.mjs';
import { inBrowsers } from './walk.mjs';

const external = dense({ layers: 2, side: 8, external: true });
/** @type {Record<string, Buffer>} */
const files = { 'onnx/model.onnx': convolution(), 'onnx/model_int8.onnx': convolution(), 'large/model.onnx': external.model, 'large/model.onnx_data': external.weights, 'README.md': Buffer.from('words') };
const listed = Object.entries(files).map(([path, { length }]) => ({ type: 'file', path, size: length }));

/** Requests to the double, and the cookies that came with it. @type {string[]} */
let asked = [];
const hub = createServer((request, response) => {
  const url = new URL(request.url ?? '/', address());
  asked.push(`${url.pathname}${url.search}${request.headers.cookie ? ' with a cookie' : ''}`);
  const head = { 'Access-Control-Allow-Origin': String(request.headers.origin ?? '*'), Vary: 'Origin', 'Access-Control-Expose-Headers': 'Link' };
  const json = (/** @type {unknown} */ value, /** @type {Record<string, string>} */ more = {}) => response.writeHead(200, { ...head, ...more, 'Content-Type': 'application/json' }).end(JSON.stringify(value));
  if (url.pathname === '/api/models') {
    const words = url.searchParams.get('search') ?? '';
    if (words === 'broken') return response.writeHead(500, head).end();
    const all = [{ id: 'someone/tiny-model', downloads: 1234, likes: 5, gated: false }, { id: 'someone/secret-tiny', downloads: 3, likes: 0, gated: 'manual' }];
    return json(all.filter(({ id }) => id.includes(words)));
  }
  if (url.pathname === '/api/models/someone/secret-tiny/tree/main') return response.writeHead(401, head).end();
  if (url.pathname === '/api/models/someone/tiny-model/tree/main') {
    // Two pages, as of a repository with many files.
    if (url.searchParams.has('cursor')) return json(listed.slice(2));
    return json(listed.slice(0, 2), { Link: `<${address()}api/models/someone/tiny-model/tree/main?recursive=true&cursor=2>; rel="next"` });
  }
  const path = decodeURIComponent(url.pathname);
  if (path.startsWith('/someone/tiny-model/resolve/main/')) return response.writeHead(302, { ...head, Location: `/files/${path.slice('/someone/tiny-model/resolve/main/'.length)}` }).end();
  const bytes = files[path.slice('/files/'.length)];
  if (!bytes) return response.writeHead(404, head).end();
  response.writeHead(200, { ...head, 'Content-Type': 'application/octet-stream', 'Content-Length': bytes.length }).end(bytes);
});
const address = () => `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (hub.address()).port}/`;
before(() => new Promise((listening) => hub.listen(0, '127.0.0.1', () => listening(undefined))));
after(() => (hub.close(), hub.closeAllConnections()));

test('the policy of hub.html adds the hosts of Hugging Face, and nothing else', () => {
  const [own, main] = ['hub.html', 'index.html'].map((name) => policyOf(name));
  assert.equal(own.replace("connect-src 'self' https://huggingface.co https://*.huggingface.co https://*.hf.co", "connect-src 'self'"), main);
  assert.match(main, /connect-src 'self';/);
  assert.equal(policyOf('worker.js'), main);
});

inBrowsers('the page of the hub', (visit) => {
  test('finds a repository, lists its ONNX files with sizes, and opens one with its weights', async () => {
    asked = [];
    const origin = address().slice(0, -1);
    await visit({ hub: origin }, async (visit) => {
      const { tab } = visit;
      await visit.load('hub.html');
      await tab.waitForSelector('#hub-words');
      await tab.type('#hub-words', 'tiny');
      await tab.click('#hub-search');
      await visit.says('.hub table', /someone\/tiny-model1,234/);
      assert.match(await visit.text('.hub table'), /someone\/secret-tiny \(after a login only\)/);
      await visit.press('someone/secret-tiny');
      await visit.says('#hub-failure', /after a login that this page does not have.*drop them here/);
      await visit.press('someone/tiny-model');
      await visit.says('.hub table', /large\/model\.onnx with model\.onnx_data/);
      const rows = await tab.$$eval('.hub tbody tr', (all) => all.map((row) => [...row.querySelectorAll('td, th')].slice(0, 2).map((cell) => cell.textContent ?? '').join(' ')));
      assert.deepEqual(rows.map((row) => row.split(' ')[0]), ['onnx/model.onnx', 'onnx/model_int8.onnx', 'large/model.onnx']);
      assert.match(rows[0], /\d+ B$/);
      await tab.click('[aria-label="Open large/model.onnx"]');
      await visit.says('.file', /model\.onnx/);
      // The search is a tab beside the open model.
      await tab.click('#tab-hub');
      await tab.waitForSelector('[aria-label="Open onnx/model.onnx"]');
      await tab.click('[aria-label="Open onnx/model.onnx"]');
      await tab.click('#tab-overview');
      await visit.says('#card-title ~ dl', /./);
      assert.ok(asked.includes('/files/large/model.onnx_data') && asked.includes('/files/onnx/model.onnx'), asked.join(', '));
      assert.deepEqual(asked.filter((one) => one.includes('cookie')), []);
      // Nothing but the hub was asked; the general check knows the page's own origin only.
      visit.requests = visit.requests.filter((url) => !url.startsWith(address()));
      visit.errors = visit.errors.filter((error) => !/401/.test(error));
    });
  });

  test('says in words what a search or a repository lacks', () => visit({ hub: address().slice(0, -1) }, async (visit) => {
    const { tab } = visit;
    await visit.load('hub.html');
    await tab.waitForSelector('#hub-words');
    const search = async (/** @type {string} */ words) => {
      await tab.$eval('#hub-words', (field) => /** @type {HTMLInputElement} */ (field).select());
      await tab.type('#hub-words', words);
      await tab.click('#hub-search');
    };
    await search('broken');
    await visit.says('#hub-failure', /The search could not be read: .* answers “500”\. Try again later/);
    await search('nothing-like-it');
    await visit.says('.hub', /Nothing with ONNX files has this name/);
    visit.requests = visit.requests.filter((url) => !url.startsWith(address()));
    visit.errors = visit.errors.filter((error) => !/500/.test(error));
  }));

  test('the main page cannot read from the hub', () => visit({ hub: address().slice(0, -1) }, async (visit) => {
    asked = [];
    const refused = await visit.tab.evaluate((url) => fetch(url).then(() => false, () => true), `${address()}api/models`);
    assert.ok(refused);
    assert.deepEqual(asked, []);
    visit.violations = [];
    visit.errors = [];
    visit.requests = visit.requests.filter((url) => !url.startsWith(address()));
  }));
});
