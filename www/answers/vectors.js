// @ts-check
/** Vectors of texts and images: one for each sample, and the samples nearest to each other. Pure. */

/** Number of neighbours that are shown. */
const shown = 5;

/**
 * One vector from an output: itself, or the mean over its rows where `mask` is not 0.
 *
 * @param {ArrayLike<number>} data
 * @param {number[]} shape
 * @param {ArrayLike<number | bigint> | undefined} mask
 */
export function pooled(data, shape, mask) {
  const width = shape[shape.length - 1] ?? data.length;
  const rows = width > 0 ? Math.floor(data.length / width) : 0;
  const fits = mask !== undefined && mask.length === rows;
  const vector = new Float32Array(width);
  let counted = 0;
  for (let row = 0; row < rows; row += 1) {
    if (fits && Number(mask[row]) === 0) continue;
    counted += 1;
    for (let at = 0; at < width; at += 1) vector[at] += data[row * width + at];
  }
  return counted > 1 ? vector.map((sum) => sum / counted) : vector;
}

/**
 * The cosine of the angle between two vectors; 0 where one of them is 0.
 *
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
export function cosine(a, b) {
  let [product, first, second] = [0, 0, 0];
  for (let at = 0; at < a.length; at += 1) {
    product += a[at] * b[at];
    first += a[at] * a[at];
    second += b[at] * b[at];
  }
  return first > 0 && second > 0 ? product / Math.sqrt(first * second) : 0;
}

/**
 * The other samples by their nearness to one, the nearest first.
 *
 * @param {Float32Array[]} vectors
 * @param {number} of
 */
function ranking(vectors, of) {
  const others = vectors.map((vector, sample) => ({ sample, cosine: cosine(vectors[of], vector) })).filter(({ sample }) => sample !== of);
  return others.sort((a, b) => b.cosine - a.cosine);
}

/**
 * The neighbours of a sample in both models. `before`: the place of a neighbour in the other model.
 *
 * @param {Float32Array[]} float
 * @param {Float32Array[]} quantized
 * @param {number} of
 */
export function neighbours(float, quantized, of) {
  const [a, b] = [ranking(float, of), ranking(quantized, of)];
  const placed = (/** @type {typeof a} */ all, /** @type {typeof a} */ other) => all.slice(0, shown).map((one) => ({ ...one, before: other.findIndex(({ sample }) => sample === one.sample) }));
  return { float: placed(a, b), quantized: placed(b, a), differs: a.length > 0 && a[0].sample !== b[0].sample };
}
