// @ts-check
/** Loads the features of the list: some at start, the others with their style when first shown. */

import { features } from '../features/list.js';
import { styled } from '../library/style-sheet.js';
import { hubAddress, shownPanels } from '../state/surroundings.js';

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

/** True for a feature that this page has and that is not left out. @param {Feature} feature */
const isShown = ({ name, place, onHub }) => (!onHub || hubAddress !== '') && (!chosen.includes(place) || (shownPanels.value?.includes(name) ?? true));

/** Places whose panels can be chosen. @type {Feature['place'][]} */
const chosen = ['side', 'run', 'tab', 'foot'];

/** The features of a place that are shown, in the order of the list. @param {Feature['place']} place */
export const at = (place) => features.filter((feature) => feature.place === place && isShown(feature));

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
  return Promise.all([load?.(), style && styled(new URL(`../features/${name}/style.css`, import.meta.url))]).then(([loaded]) => {
    keep(name, loaded);
    return shown(name);
  });
}
