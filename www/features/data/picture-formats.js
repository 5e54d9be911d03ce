// @ts-check
/**
 * Pictures in formats that the engine does not read: the browser decodes them and writes PNGs. Of a
 * moving picture it takes the first. Loaded with the first such file.
 */

import { otherPicture } from '../../files.js';

/** @import { NamedFile } from '../../types.js' */

/**
 * The files, with a PNG of the same path in place of each such picture.
 *
 * @param {NamedFile[]} files
 * @returns {Promise<NamedFile[]>}
 */
export const asPngs = (files) => Promise.all(files.map((file) => (otherPicture(file) ? asPng(file) : file)));

/** @param {NamedFile} file @returns {Promise<NamedFile>} */
async function asPng({ path, blob }) {
  try {
    const picture = await createImageBitmap(blob, { imageOrientation: 'from-image', colorSpaceConversion: 'none', premultiplyAlpha: 'none' });
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    canvas.getContext('2d')?.drawImage(picture, 0, 0);
    picture.close();
    return { path: path.replace(/[^.]+$/, 'png'), blob: await canvas.convertToBlob({ type: 'image/png' }) };
  } catch {
    throw new Error(`${path}: this browser can't decode the picture; save it as PNG or JPEG, or leave it out`);
  }
}
