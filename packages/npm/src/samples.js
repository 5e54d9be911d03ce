// @ts-check
/** Samples as callers have them, turned into files that the engine reads. */

/** @import { Elements, InputTensor, NamedFile } from '../../../www/types.js' */

/**
 * A sample: a file; bytes with a name; or a tensor for each input of the model, by name.
 *
 * @typedef {File | NamedFile | { path: string, bytes: Uint8Array } | InputTensor[] | Record<string, { shape: number[], data: Elements }>} Sample
 */

/** ONNX's numbers of element types. @type {Record<string, number>} */
const elementTypes = {
  Float32Array: 1, Uint8Array: 2, Int8Array: 3, Uint16Array: 4, Int16Array: 5, Int32Array: 6, BigInt64Array: 7,
  Float64Array: 11, Uint32Array: 12, BigUint64Array: 13,
};

/**
 * The files of samples. Tensors become files of ONNX's test data, which have every type.
 *
 * @param {Iterable<Sample>} samples
 * @param {string[]} inputs names of the model's inputs, in order
 * @returns {(File | NamedFile)[]}
 */
export function sampleFiles(samples, inputs) {
  /** @param {Sample} sample @param {number} index @returns {(File | NamedFile)[]} */
  const filesOf = (sample, index) => {
    if (sample instanceof Blob) return [/** @type {File} */ (sample)];
    if ('blob' in sample && sample.blob instanceof Blob) return [/** @type {NamedFile} */ (sample)];
    if ('bytes' in sample && typeof sample.path === 'string') return [{ path: sample.path, blob: new Blob([/** @type {BlobPart} */ (sample.bytes)]) }];
    return tensorFiles(/** @type {any} */ (sample), index, inputs);
  };
  return [...samples].flatMap(filesOf);
}

/**
 * @param {InputTensor[] | Record<string, { shape: number[], data: Elements }>} sample
 * @param {number} index
 * @param {string[]} inputs
 * @returns {NamedFile[]}
 */
function tensorFiles(sample, index, inputs) {
  const named = Array.isArray(sample) ? Object.fromEntries(sample.map((one) => [one.name, one])) : sample;
  const number = String(index).padStart(6, '0');
  return inputs.map((name, place) => {
    const tensor = named[name];
    if (!tensor) throw new TypeError(`Sample ${index} has no tensor for the input "${name}": give one for each of ${inputs.join(', ')}.`);
    return { path: `test_data_set_${number}/input_${place}.pb`, blob: new Blob([tensorProto(name, tensor)]) };
  });
}

/**
 * A TensorProto: dims (field 1), data_type (2), name (8) and raw_data (9).
 *
 * @param {string} name
 * @param {{ shape: number[], data: Elements }} tensor
 */
function tensorProto(name, { shape, data }) {
  const type = elementTypes[data?.constructor?.name];
  if (!type) throw new TypeError(`The data of "${name}" is not a supported typed array: give a Float32Array, a BigInt64Array or the like.`);
  const text = new TextEncoder().encode(name);
  const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const head = [...shape.flatMap((size) => [0x08, ...varint(size)]), 0x10, type, 0x42, ...varint(text.length), ...text, 0x4a, ...varint(raw.length)];
  const file = new Uint8Array(head.length + raw.length);
  file.set(head);
  file.set(raw, head.length);
  return file;
}

/** @param {number} value @returns {number[]} */
function varint(value) {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return [...bytes, value];
}
