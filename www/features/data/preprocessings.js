// @ts-check
/**
 * The usual ways to turn pictures into values, and the choice among them by labels. Independent of
 * the page.
 */

/** @import { Tried } from './state.js' */

/**
 * A way in the page's form: a preset and what differs from it.
 *
 * @typedef {{ preset: string, image: Record<string, any> }} Way
 */

/** Names of the presets; the engine defines their values. @type {Record<string, string>} */
export const presetNames = {
  imagenet: 'ImageNet (PyTorch, timm)',
  unit: '0 to 1 (YOLO and others)',
  signed: '−1 to 1 (ViT, Inception)',
  clip: 'CLIP, BLIP',
  lite: 'EfficientNet-Lite',
  caffe: 'Caffe (BGR, mean subtracted)',
  raw: '0 to 255, unscaled',
};

/** Keys of values; the others are on size and shape. */
export const valueKeys = ['order', 'scale', 'mean', 'std'];

/** Equal values give equal texts. @param {Way} way @param {Record<string, Record<string, any>>} presets */
const valuesOf = ({ preset, image }, presets) => {
  const whole = { ...presets[preset], ...image };
  return JSON.stringify([...valueKeys, 'layout'].map((key) => whole[key] ?? null));
};

/**
 * The ways of the first round: the current one, then each preset, in each layout.
 *
 * @param {Record<string, Record<string, any>>} presets
 * @param {Way} current
 * @param {string[]} layouts those to try; empty where the shape tells it
 * @returns {Way[]}
 */
export function usualWays(presets, current, layouts) {
  const rest = Object.fromEntries(Object.entries(current.image).filter(([key]) => !valueKeys.includes(key)));
  const all = Object.keys(presets).flatMap((preset) => (layouts.length > 0 ? layouts.map((layout) => ({ preset, image: { ...rest, layout } })) : [{ preset, image: rest }]));
  return distinct([current, ...all], presets);
}

/** Values with red and blue exchanged. @param {Way} way @param {Record<string, Record<string, any>>} presets @returns {Way} */
export function exchanged({ preset, image }, presets) {
  const whole = { ...presets[preset], ...image };
  return { preset, image: { ...image, order: whole.order === 'bgr' ? 'rgb' : 'bgr', mean: [...whole.mean].reverse(), std: [...whole.std].reverse() } };
}

/** @param {Way[]} ways @param {Record<string, Record<string, any>>} presets @returns {Way[]} */
export function distinct(ways, presets) {
  const seen = new Set();
  return ways.filter((way) => {
    const key = valuesOf(way, presets);
    return !seen.has(key) && seen.add(key);
  });
}

/** A way in words. @param {Way} way @param {Record<string, Record<string, any>>} presets */
export function named({ preset, image }, presets) {
  const order = image.order && image.order !== presets[preset]?.order ? `, ${String(image.order).toUpperCase()}` : '';
  const own = ['scale', 'mean', 'std'].some((key) => key in image) && !order ? ', changed' : '';
  return `${presetNames[preset] ?? preset}${order}${own}${image.layout ? `, ${String(image.layout).toUpperCase()}` : ''}`;
}

/**
 * Samples in turn from each class, so that a few have many classes.
 *
 * @template T
 * @param {T[]} samples
 * @param {(sample: T) => string} classOf
 * @param {number} most
 * @returns {T[]}
 */
export function spread(samples, classOf, most) {
  /** @type {Map<string, T[]>} */
  const byClass = new Map();
  for (const sample of samples) byClass.set(classOf(sample), [...(byClass.get(classOf(sample)) ?? []), sample]);
  /** @type {T[]} */
  const taken = [];
  for (let turn = 0; taken.length < Math.min(most, samples.length); turn += 1) {
    for (const group of byClass.values()) if (turn < group.length && taken.length < most) taken.push(group[turn]);
  }
  return taken;
}

/**
 * The place of the right class among the scores: true if it is the first, and its share of the
 * softmax, which breaks ties.
 *
 * @param {ArrayLike<number>} scores of one sample, or of several of which the first counts
 * @param {number} classes
 * @param {number} label
 */
export function judged(scores, classes, label) {
  let [best, sum] = [0, 0];
  for (let at = 1; at < classes; at += 1) if (scores[at] > scores[best]) best = at;
  for (let at = 0; at < classes; at += 1) sum += Math.exp(scores[at] - scores[best]);
  const share = Math.exp(scores[label] - scores[best]) / sum;
  return { right: best === label, share: Number.isFinite(share) ? share : 0 };
}

/**
 * More right answers, then a larger share for the right class. The current way, which is the first,
 * wins a tie of right answers.
 *
 * @template {Tried} T
 * @param {T[]} tried in the order in which they were tried
 * @returns {T[]} the best first
 */
export function ranked(tried) {
  const rate = (/** @type {T} */ one) => (one.of > 0 ? one.right / one.of : 0);
  return [...tried].sort((a, b) => rate(b) - rate(a) || Number(b === tried[0]) - Number(a === tried[0]) || b.share / Math.max(1, b.of) - a.share / Math.max(1, a.of));
}

/**
 * True if guessing could give so many right answers: within two standard deviations of chance.
 *
 * @param {Pick<Tried, 'right' | 'of'>} one
 * @param {number} classes
 */
export function byChance({ right, of }, classes) {
  const chance = of / classes;
  return right <= chance + 2 * Math.sqrt(chance * (1 - 1 / classes));
}
