// One inference in onnxruntime-web, in node, on one thread: node run_web.mjs JOB.json
//
// JOB.json holds { model, inputs: [{ name, type, dims, file }], folder }: raw little-endian tensors in, raw
// tensors out into `folder`, and their names, types and shapes as JSON on standard output. With `inputs: null`
// the model is loaded only, and the names of its outputs are told.

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
const session = await ort.InferenceSession.create(new Uint8Array(await readFile(job.model)), { executionProviders: ['wasm'] });
if (job.inputs === null) {
  console.log(JSON.stringify({ outputs: session.outputNames.map((name) => ({ name })) }));
  process.exit();
}

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
