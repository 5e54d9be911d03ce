// @ts-check
/**
 * The part of a picture that a model sees, by the preprocessing: the sizes are those of
 * `crates/samples/image_size.rs`. Pure.
 */

/**
 * `source`: the part of the picture, in its pixels; `target`: where it lies in the input, as shares
 * of the input's sides.
 *
 * @typedef {{ x: number, y: number, width: number, height: number }} Area
 * @typedef {{ source: Area, target: Area }} Placement
 */

const whole = { x: 0, y: 0, width: 1, height: 1 };

/**
 * @param {{ height: number, width: number }} picture
 * @param {{ height: number, width: number }} input
 * @param {{ resize?: string, shorterSide?: number | null }} settings
 * @returns {Placement}
 */
export function placement(picture, input, { resize = 'shorter', shorterSide }) {
  const all = { x: 0, y: 0, width: picture.width, height: picture.height };
  if (resize === 'letterbox') {
    const scale = Math.min(input.width / picture.width, input.height / picture.height);
    const [width, height] = [(picture.width * scale) / input.width, (picture.height * scale) / input.height];
    return { source: all, target: { x: (1 - width) / 2, y: (1 - height) / 2, width, height } };
  }
  if (resize !== 'shorter') return { source: all, target: whole };
  const short = Math.min(input.width, input.height);
  const side = Math.max(shorterSide ?? Math.floor((short * 8 + 3) / 7), short);
  const [coverWidth, coverHeight] = [(input.width * side) / short, (input.height * side) / short];
  const scale = Math.max(coverWidth / picture.width, coverHeight / picture.height);
  const [width, height] = [Math.min(input.width / scale, picture.width), Math.min(input.height / scale, picture.height)];
  return { source: { x: (picture.width - width) / 2, y: (picture.height - height) / 2, width, height }, target: whole };
}

/**
 * A point of the input as a share of the part that is shown.
 *
 * @param {number} x
 * @param {number} y
 * @param {Area} target
 */
export const shownAt = (x, y, target) => ({ x: (x - target.x) / target.width, y: (y - target.y) / target.height });
