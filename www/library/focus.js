// @ts-check
/** Keeps the focus when the elements of a box are drawn again. */

/** Selector that finds an element again, by its `data-key` or its id. @param {HTMLElement} element */
const place = ({ dataset, id }) => (dataset.key ? `[data-key="${CSS.escape(dataset.key)}"]` : id ? `#${CSS.escape(id)}` : '');

/**
 * To be called before the elements are drawn. If one of them has the focus, its successor gets it,
 * or else the element that the selector finds.
 *
 * @param {Element | undefined} box
 * @param {string} [otherwise]
 */
export function keepFocus(box, otherwise = '') {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  if (!box || !before || !box.contains(before)) return;
  queueMicrotask(() => {
    // The element is still there, or something else took the focus.
    if (document.activeElement !== document.body) return;
    const next = [place(before), otherwise].map((selector) => /** @type {HTMLElement | null} */ (selector ? box.querySelector(selector) : null));
    (next[0] ?? next[1])?.focus({ preventScroll: true });
  });
}
