// A double of onnxruntime-web that damages the output of one node: the real runtime runs a model in
// which another node follows it. Served in place of the real module.

// @ts-ignore the real module is beside this one where it is served
import * as real from './real.mjs';
import { field, fields, joined, text } from './protobuf.mjs';

/** @type {{ node: string, operator: string, value: number }} */
const damage = JSON.parse('DAMAGE');

export const { env, Tensor } = real;
export const InferenceSession = {
  /** @param {Uint8Array} bytes @param {any} options */
  create: (bytes, options) => real.InferenceSession.create(damaged(bytes), options),
};

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
