// Generates tokens greedily with transformers.js in a page: `generate_page.mjs BROWSER FOLDER COUNT
// DTYPES ID...`, with data types between commas. Prints the ids of each, prompt and continuation, as
// one JSON object. Everything comes from a server of this process; the page's policy forbids other
// hosts.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from '../../scripts/browsers.mjs';
import { isolation } from '../../scripts/serve.mjs';

const [browserName, folder, count, dtypes, ...ids] = process.argv.slice(2);

// The runtime is the one that transformers.js asks for, which may be another than Octet's own.
const here = dirname(fileURLToPath(import.meta.url));
const web = join(here, '../../node_modules/@huggingface/transformers/dist/transformers.web.js');
const own = createRequire(web);
const runtime = dirname(own.resolve('onnxruntime-web/webgpu'));
const common = join(dirname(own.resolve('onnxruntime-common')), '../esm');
const folders = { '/models/web/': folder, '/transformers/': dirname(web), '/ort/': runtime, '/common/': common };
const types = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.json': 'application/json', '.wasm': 'application/wasm' };
const imports = {
  '@huggingface/transformers': '/transformers/transformers.web.js',
  'onnxruntime-web/webgpu': '/ort/ort.webgpu.bundle.min.mjs',
  'onnxruntime-common': '/common/index.js',
};
const policy = "default-src 'self' blob: 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'";
const page = `<!doctype html><title>transformers.js</title><script type="importmap">${JSON.stringify({ imports })}</script>`;

const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname));
  const headers = { ...isolation, 'Content-Security-Policy': policy };
  if (path === '/') return response.writeHead(200, { ...headers, 'Content-Type': 'text/html' }).end(page);
  const [prefix, root] = Object.entries(folders).find(([start]) => path.startsWith(start)) ?? [];
  const file = prefix && join(root, path.slice(prefix.length));
  const size = file && await stat(file).then((found) => (found.isFile() ? found.size : null), () => null);
  if (typeof size !== 'number') return response.writeHead(404, headers).end();
  response.writeHead(200, { ...headers, 'Content-Type': types[extname(file)] ?? 'application/octet-stream', 'Content-Length': size });
  createReadStream(file).pipe(response);
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));

/** Runs in the page. */
async function generate({ dtypes, ids, count }) {
  const { AutoModelForCausalLM, Tensor, env } = await import('@huggingface/transformers');
  Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, localModelPath: '/models/', useBrowserCache: false, useWasmCache: false });
  env.backends.onnx.wasm.wasmPaths = '/ort/';
  const tensor = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
  const made = {};
  for (const dtype of dtypes) {
    const model = await AutoModelForCausalLM.from_pretrained('web', { local_files_only: true, dtype, device: 'wasm' });
    const tokens = await model.generate({ input_ids: tensor(ids), attention_mask: tensor(ids.map(() => 1)), max_new_tokens: count, do_sample: false });
    made[dtype] = tokens.tolist()[0].map(Number);
    await model.dispose();
  }
  return made;
}

const browser = await launch(browserName, { patience: 240_000 });
try {
  const tab = await browser.newPage();
  tab.on('console', (message) => console.error(message.text()));
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  const made = await tab.evaluate(generate, { dtypes: dtypes.split(','), ids: ids.map(Number), count: Number(count) });
  console.log(JSON.stringify(made));
} finally {
  await browser.close();
  server.close();
}
