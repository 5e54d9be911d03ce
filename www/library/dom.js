// @ts-check
/**
 * Builds DOM elements from function calls. A function as a child or attribute is live: it runs
 * again when a signal that it read changes. Only that part of the page is updated, so focus and
 * selection survive.
 */

import { effect } from './signals.js';

/**
 * The control on which a pointer is down. Its part of the page is not replaced before the pointer is
 * up: the browser sends no click to an element that is gone.
 *
 * @type {Element | null}
 */
let pressed = null;
/** Parts to replace once the pointer is up. @type {Set<() => void>} */
const waiting = new Set();

addEventListener('pointerdown', ({ target }) => (pressed = target instanceof Element ? target.closest('button, a, label, summary') : null), true);
// A click follows the end of its press.
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => setTimeout(release), true);

function release() {
  pressed = null;
  const all = [...waiting];
  waiting.clear();
  for (const replace of all) replace();
}

/** @typedef {Node | string | number | false | null | undefined} Leaf */
/** @typedef {Leaf | Leaf[] | (() => Leaf | Leaf[])} Child */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [attributes] `on…` listens; a function is live; `false` and `null` leave it out
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  // Children first: a select takes only a value that one of its options has.
  fill(element, children);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (typeof value === 'function') {
      effect(() => set(element, name, value()));
    } else {
      set(element, name, value);
    }
  }
  return element;
}

/**
 * An SVG element; its attributes are not live.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | null | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * Appends children to an existing element.
 *
 * @param {Element | DocumentFragment} element
 * @param {Child[]} children
 */
export function fill(element, children) {
  for (const child of children) {
    if (typeof child === 'function') live(element, child);
    else element.append(...nodes(child));
  }
}

/**
 * @param {Element | DocumentFragment} parent
 * @param {() => Leaf | Leaf[]} read
 */
function live(parent, read) {
  // An empty text node keeps the position while there is nothing to show.
  /** @type {ChildNode[]} */
  let shown = [document.createTextNode('')];
  parent.append(...shown);
  let next = shown;
  const replace = () => {
    const [first, ...rest] = shown;
    if (rest.length === 0 && first instanceof Text && next.length === 1 && next[0] instanceof Text) {
      // Changed text keeps its node, so nothing flickers and live regions read it once.
      if (first.data !== next[0].data) first.data = next[0].data;
      return;
    }
    for (const node of rest) node.remove();
    first.replaceWith(...next);
    shown = next;
  };
  effect(() => {
    const made = nodes(read());
    next = made.length > 0 ? made : [document.createTextNode('')];
    if (pressed && shown.some((node) => node.contains(pressed))) waiting.add(replace);
    else replace();
  });
}

/**
 * @param {Leaf | Leaf[]} leaf
 * @returns {ChildNode[]}
 */
function nodes(leaf) {
  if (Array.isArray(leaf)) return leaf.flatMap(nodes);
  if (leaf === false || leaf === null || leaf === undefined) return [];
  return [leaf instanceof Node ? /** @type {ChildNode} */ (leaf) : document.createTextNode(String(leaf))];
}

/** @param {HTMLElement} element @param {string} name @param {unknown} value */
function set(element, name, value) {
  if (name === 'value' || name === 'checked') {
    // The property is the current value of a form control, the attribute only its initial one.
    // Compared first, as assigning moves the caret.
    const control = /** @type {any} */ (element);
    if (control[name] !== value) control[name] = value ?? '';
  } else if (value === false || value === null || value === undefined) {
    element.removeAttribute(name);
  } else {
    element.setAttribute(name, value === true ? '' : String(value));
  }
}
