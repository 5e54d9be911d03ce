// @ts-check
/** The picture of a sample as its model sees it, in full resolution, and canvases with it. */

import { isPicture } from '../../files.js';
import { h } from '../../library/dom.js';
import { imageSettings, model, sampleSettings, samples } from '../../state/page.js';
import { tensorCanvas } from '../data/view.js';
import { placement } from './placement.js';

/** @import { NamedFile } from '../../types.js' */
/** @import { Placement } from './placement.js' */

/** @typedef {Placement & { image: CanvasImageSource }} SeenPicture */
/** @typedef {(at: number) => [number, number, number, number]} Colouring red, green, blue and opacity of a pixel */

/** Longest side of a canvas. */
const longest = 640;

/** The files of a sample. @param {string} name @returns {NamedFile[]} */
export function filesOf(name) {
  const { refs, files } = samples.peek();
  const parts = refs.find((ref) => ref.name === name)?.parts ?? [];
  return files.filter(({ path }) => parts.includes(path));
}

/**
 * The picture of a sample; of other samples the tensor, where it has the shape of a picture; `null`
 * where there is nothing to see.
 *
 * @param {string} name
 * @param {{ height: number, width: number }} [input] of the model; as the picture where it is not known
 * @returns {Promise<SeenPicture | null>}
 */
export async function seenPicture(name, input) {
  const files = filesOf(name);
  const file = files.find(isPicture);
  const tensor = async () => {
    const decoded = await model.peek()?.preview(files, sampleSettings());
    const canvas = decoded && tensorCanvas(decoded.previews[0], decoded.first, name);
    return canvas ? { image: canvas, ...placement(canvas, canvas, { resize: 'exact' }) } : null;
  };
  if (!file) return tensor().catch(() => null);
  const image = await createImageBitmap(file.blob, { imageOrientation: 'from-image' }).catch(() => null);
  if (!image) return tensor().catch(() => null);
  return { image, ...placement(image, input ?? image, input ? imageSettings() : { resize: 'exact' }) };
}

/**
 * A canvas with the picture; `paint` draws over it.
 *
 * @param {SeenPicture} seen
 * @param {string} label
 * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} [paint]
 */
export function canvasOf({ image, source }, label, paint) {
  const scale = longest / Math.max(source.width, source.height);
  const [width, height] = [source.width, source.height].map((side) => Math.max(1, Math.round(side * scale)));
  const canvas = h('canvas', { width, height, role: 'img', 'aria-label': label });
  const context = canvas.getContext('2d');
  if (!context) return canvas;
  context.imageSmoothingEnabled = scale < 4;
  context.drawImage(image, source.x, source.y, source.width, source.height, 0, 0, width, height);
  paint?.(context, width, height);
  return canvas;
}

/** A canvas of coloured pixels. @param {{ height: number, width: number }} size @param {Colouring} colouring */
export function painted({ height, width }, colouring) {
  const canvas = h('canvas', { width, height, role: 'img', 'aria-label': 'Mask' });
  const context = canvas.getContext('2d');
  if (!context) return canvas;
  const image = context.createImageData(width, height);
  for (let at = 0; at < width * height; at += 1) image.data.set(colouring(at), at * 4);
  context.putImageData(image, 0, 0);
  return canvas;
}

/** A small picture of a sample for lists; empty until it is decoded. @param {string} name */
export function thumbnail(name) {
  const place = h('span', { class: 'thumbnail', 'aria-hidden': 'true' });
  if (filesOf(name).some(isPicture)) void seenPicture(name).then((seen) => seen && place.append(canvasOf(seen, name)));
  return place;
}
