// @ts-check
/** Loads the features of the list: some at start, the others with their style when first shown. */

import { h } from '../library/dom.js';
import { features } from '../features/list.js';

/** @import { Feature, Panel } from '../features/list.js' */

/** Views of the features that are loaded, by name. @type {Map<string, () => Node>} */
const views = new Map();

/** Loads the features that are there from the start; index.html links their styles. */
export async function loadAtStart() {
  await Promise.all(features.map(async ({ name, load, onDemand }) => !onDemand && keep(name, await load?.())));
}

/** @param {string} name @param {Panel | undefined} panel */
function keep(name, panel) {
  if (panel?.view) views.set(name, panel.view);
}

/** @param {string} name */
function shown(name) {
  const view = views.get(name);
  if (!view) throw new Error(`${name} has no view`);
  return view();
}

/** The features of a place, in the order of the list. @param {Feature['place']} place */
export const at = (place) => features.filter((feature) => feature.place === place);

/** The panels of a place, whose features load at start. @param {Feature['place']} place */
export const panels = (place) => at(place).map(({ name }) => shown(name));

/**
 * The panel of a feature that may load on demand.
 *
 * @param {Feature} feature
 * @returns {Node | Promise<Node>}
 */
export function panel({ name, load, style }) {
  if (views.has(name)) return shown(name);
  // The style is there before the panel, so that it is never seen without.
  return Promise.all([load?.(), style && styled(name)]).then(([loaded]) => {
    keep(name, loaded);
    return shown(name);
  });
}

/** Adds the style sheet of a feature to the page. @param {string} name @returns {Promise<void>} */
function styled(name) {
  const link = h('link', { rel: 'stylesheet', href: new URL(`../features/${name}/style.css`, import.meta.url).href });
  const loaded = new Promise((resolve, reject) => {
    link.addEventListener('load', () => resolve(undefined));
    link.addEventListener('error', () => {
      link.remove();
      reject(new Error('its style sheet did not load'));
    });
  });
  document.head.append(link);
  return loaded;
}
