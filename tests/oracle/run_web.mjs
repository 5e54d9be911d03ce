// One inference in onnxruntime-web, in node, on one thread: node run_web.mjs JOB.json
//
// JOB.json holds { model, inputs: [{ name, type, dims, file }], folder }: raw little-endian tensors in, raw
// tensors out into `folder`, and their names, types and shapes as JSON on standard output. With { models } they are
// loaded only, one after the other: told are the names of the outputs of each, or why it is refused.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as ort from 'onnxruntime-web';

/** @type {Record<string, any>} */
const arrays = {
  float32: Float32Array,
  int64: BigInt64Array,
  int32: Int32Array,
  uint8: Uint8Array,
  int8: Int8Array,
  bool: Uint8Array,
};

const job = JSON.parse(await readFile(process.argv[2], 'utf8'));
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'error';
/** @param {string} model */
const load = async (model) => ort.InferenceSession.create(new Uint8Array(await readFile(model)), { executionProviders: ['wasm'] });

if (job.models) {
  const loaded = [];
  for (const model of job.models) {
    try {
      const session = await load(model);
      loaded.push({ outputs: session.outputNames });
      await session.release();
    } catch (error) {
      loaded.push({ error: String(error) });
    }
  }
  console.log(JSON.stringify(loaded));
  process.exit();
}

const session = await load(job.model);

/** @type {Record<string, any>} */
const feeds = {};
for (const { name, type, dims, file } of job.inputs) {
  const bytes = await readFile(file);
  const values = new arrays[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  feeds[name] = new ort.Tensor(type, values, dims);
}
const results = await session.run(feeds);

const outputs = [];
for (const [index, name] of session.outputNames.entries()) {
  const { type, dims, data } = results[name];
  const file = join(job.folder, `output_${index}.bin`);
  await writeFile(file, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  outputs.push({ name, type, dims, file });
}
console.log(JSON.stringify({ version: ort.env.versions.web, outputs }));
