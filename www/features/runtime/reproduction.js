// @ts-check
/** A reproduction of a node that the runtime computes differently: its model and its tensors. */

import { npy, zip } from '../../library/zip.js';

/** @import { OutputTensor } from '../../types.js' */
/** @import { Culprit } from './bisect.js' */

/** Tensors as an `.npz` archive, by name. @param {OutputTensor[]} tensors */
const npz = (tensors) => zip(tensors.map((tensor) => ({ name: `${tensor.name.replaceAll('/', '_')}.npy`, bytes: npy(tensor) })));

/**
 * An archive with the model, its inputs, both outputs and a program that runs it.
 *
 * @param {Culprit} found
 * @param {Blob} file the model of this node
 * @param {string} where the runtime, in words
 */
export async function reproduction(found, file, where) {
  const text = (/** @type {string[]} */ ...lines) => new TextEncoder().encode(`${lines.join('\n')}\n`);
  return zip([
    { name: 'model.onnx', bytes: new Uint8Array(await file.arrayBuffer()) },
    { name: 'inputs.npz', bytes: npz(found.inputs) },
    { name: 'octet.npz', bytes: npz([found.pair.ours]) },
    { name: 'runtime.npz', bytes: npz([found.pair.theirs]) },
    { name: 'README.txt', bytes: text(
      `Node ${found.node} (${found.operator}), output ${found.output}, computed differently by ${where}.`,
      found.alone ? 'The node differs by itself, on these inputs.' : 'The node differs in the whole model only; by itself it is right.',
      '',
      'model.onnx   the node, with those that the runtime fuses with it',
      'inputs.npz   what Octet computed for its inputs; a slash in a name is _ here',
      'octet.npz    its output in Octet',
      'runtime.npz  its output in the runtime',
      '',
      'In Python, with ONNX Runtime:',
      '  import numpy, onnxruntime',
      '  session = onnxruntime.InferenceSession("model.onnx")',
      '  inputs = numpy.load("inputs.npz")',
      '  print(session.run(None, {one.name: inputs[one.name.replace("/", "_")] for one in session.get_inputs()}))',
    ) },
  ]);
}
