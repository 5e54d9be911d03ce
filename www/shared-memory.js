// @ts-check
/** Where things stand in the words that the cores share with the page (`Shared` in `types.js`). */

/** Places in `control`. */
export const slot = { cancel: 0, done: 1, panicked: 2, ended: 3 };
