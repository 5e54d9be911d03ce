// @ts-check
/**
 * Names of the variants of a model, as ONNX Runtime's tools and transformers.js have them, and the
 * settings that make each.
 */

import { canonical } from '../../settings-document.js';

/** @import { Settings } from '../../types.js' */

/** @typedef {{ ending: string, what: string, document: Settings }} Variant */

/** Variants that need no samples. @type {Variant[]} */
export const variants = [
  { ending: '_quantized', what: '8-bit products, measured at run time', document: { scheme: 'dynamic' } },
  { ending: '_weights_int8', what: '8-bit weights, computed in float', document: { scheme: 'weights' } },
  { ending: '_fp16', what: 'half precision', document: { scheme: 'float16' } },
  { ending: '_q4', what: '4-bit blocks', document: { scheme: 'blocks' } },
  { ending: '_q4f16', what: '4-bit blocks between halves', document: { scheme: 'blocks', blocks: { activations: 'float16' } } },
];

/** The variant of ranges from samples. @type {Variant} */
export const calibrated = { ending: '_int8', what: '8-bit integers throughout, with ranges from the samples', document: {} };

/** A file name without its ending. @param {string} name */
export const stemOf = (name) => name.replace(/\.onnx$/i, '');

/**
 * Other names under which programs look for a result: those by `dtype` of transformers.js.
 *
 * @param {string} model the name of the float model
 * @param {string} file the name of the result
 * @param {Settings} document
 * @returns {string[]} the usual name first
 */
export function namesFor(model, file, document) {
  const stem = stemOf(model);
  const { scheme = 'static', blocks = {}, activations } = document;
  const halves = blocks.activations === 'float16' ? 'f16' : '';
  /** @type {Record<string, string[]>} */
  const endings = {
    static: [activations?.type === 'i8' || document.weights?.type !== 'u8' ? '_int8' : '_uint8', '_quantized'],
    dynamic: ['_quantized'],
    weights: ['_quantized'],
    float16: ['_fp16'],
    blocks: blocks.form === 'matmul_bnb4' ? ['_bnb4'] : blocks.bits === 8 ? ['_quantized'] : [`_q${blocks.bits ?? 4}${halves}`],
  };
  return [...new Set([file, ...endings[scheme].map((ending) => `${stem}${ending}.onnx`)])];
}

/** True if a result was made with the settings of a variant. @param {Variant} variant @param {Settings} document */
export const isVariant = (variant, document) => canonical(variant.document) === canonical(document);
