// A double of onnxruntime-web that damages the output of one node: the real runtime runs a model in
// which another node follows it. Served in place of the real module, so it imports nothing of ours.

// @ts-ignore the real module is beside this one where it is served
import * as real from './real.mjs';

/** @type {{ node: string, operator: string, value: number }} */
const damage = JSON.parse('DAMAGE');

export const { env, Tensor } = real;
export const InferenceSession = {
  /** @param {Uint8Array} bytes @param {any} options */
  create: (bytes, options) => real.InferenceSession.create(damaged(bytes), options),
};

/** @typedef {{ number: number, type: number, start: number, content: Uint8Array, whole: Uint8Array }} Field */

/** The fields of a message. @param {Uint8Array} bytes @returns {Field[]} */
function fields(bytes) {
  let at = 0;
  const varint = () => {
    let [value, factor] = [0, 1];
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      factor *= 128;
      if (byte < 128) return value;
    }
  };
  const found = [];
  while (at < bytes.length) {
    const start = at;
    const tag = varint();
    const type = tag & 7;
    let from = at;
    if (type === 0) varint();
    else if (type === 2) {
      const length = varint();
      from = at;
      at += length;
    } else at += type === 5 ? 4 : 8;
    found.push({ number: tag >>> 3, type, start, content: bytes.subarray(from, at), whole: bytes.subarray(start, at) });
  }
  return found;
}

/** @param {number} value */
function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** @param {number} number @param {Uint8Array | string} content */
function field(number, content) {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  return joined([Uint8Array.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
}

/** @param {Uint8Array} bytes */
const text = (bytes) => new TextDecoder().decode(bytes);

/** The model with the damage. @param {Uint8Array} model */
function damaged(model) {
  return joined(fields(model).map((one) => (one.number === 7 ? field(7, graph(one.content)) : one.whole)));
}

/** @param {Uint8Array} bytes */
function graph(bytes) {
  return joined(fields(bytes).flatMap((one) => {
    const parts = one.number === 1 ? fields(one.content) : [];
    if (!parts.some(({ number, content }) => number === 3 && text(content) === damage.node)) return [one.whole];
    const output = text(parts.find(({ number }) => number === 2)?.content ?? new Uint8Array());
    const inner = parts.map((part) => (part.number === 2 ? field(2, `${output} undamaged`) : part.whole));
    const constant = joined([Uint8Array.of(16, 1), field(8, 'the damage'), field(9, new Uint8Array(new Float32Array([damage.value]).buffer))]);
    const after = [field(1, `${output} undamaged`), field(1, 'the damage'), field(2, output), field(4, damage.operator)];
    return [field(1, joined(inner)), field(1, joined(after)), field(5, constant)];
  }));
}
