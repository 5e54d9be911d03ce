// @ts-check
/**
 * The features of the page, listed once. The studio builds the sidebar and the tabs from this list,
 * in its order. `scripts/preload.mjs` takes from it what index.html loads at start.
 *
 * Each feature is the folder of its name: its view (`view.js`), its state and logic, its style.
 */

/**
 * The module `view.js` of a feature. Without `view`, it defines an element of index.html.
 *
 * @typedef {{ view?: () => Node }} Panel
 */

/**
 * The place of a feature on the page.
 *
 * - `element`: an element of index.html that the view defines
 * - `welcome`: the view without a model
 * - `large`: the view of a model that is converted piece by piece, in place of the studio
 * - `side`: the sidebar; `run`: the foot of the sidebar, always in sight
 * - `tab`: a tab; `aside`: beside the tabs where a layer can be selected
 * - `foot`: the foot of the studio
 * - `part`: inside panels that import it; it loads with them, at start, or when it is first opened
 *
 * @typedef {'element' | 'welcome' | 'large' | 'side' | 'run' | 'tab' | 'aside' | 'foot' | 'part'} Place
 */

/**
 * @typedef {object} Feature
 * @property {string} name its folder, and the name of its tab
 * @property {Place} place
 * @property {string} [title] of its tab, or of its panel in the sidebar
 * @property {() => Promise<Panel>} [load]
 * @property {boolean} [onDemand] for a tab, an aside or a view that loads when it is first shown
 * @property {boolean} [style] for a folder with a `style.css`
 * @property {boolean} [selects] for a tab where a layer can be selected
 * @property {boolean} [onHub] for a tab of `hub.html` alone; without a model it is above the welcome
 */

/** @type {Feature[]} */
export const features = [
  { name: 'header', place: 'element', load: () => import('./header/view.js'), style: true },
  { name: 'welcome', place: 'welcome', load: () => import('./welcome/view.js'), style: true },
  { name: 'large', place: 'large', load: () => import('./large/view.js'), onDemand: true, style: true },
  { name: 'model', place: 'side', title: 'Model', load: () => import('./model/view.js'), style: true },
  { name: 'data', place: 'side', title: 'Data', load: () => import('./data/view.js'), style: true },
  { name: 'settings', place: 'side', title: 'Settings', load: () => import('./settings/view.js'), style: true },
  { name: 'run', place: 'run', load: () => import('./run/view.js'), style: true },
  { name: 'overview', place: 'tab', title: 'Overview', load: () => import('./overview/view.js') },
  { name: 'layers', place: 'tab', title: 'Layers', load: () => import('./layers/view.js'), onDemand: true, style: true, selects: true },
  { name: 'graph', place: 'tab', title: 'Graph', load: () => import('./graph/view.js'), onDemand: true, style: true, selects: true },
  { name: 'timeline', place: 'tab', title: 'Timeline', load: () => import('./timeline/view.js'), onDemand: true, style: true },
  { name: 'search', place: 'tab', title: 'Search', load: () => import('./search/view.js'), onDemand: true, style: true },
  { name: 'compare', place: 'tab', title: 'Compare', load: () => import('./compare/view.js'), onDemand: true, style: true },
  { name: 'download', place: 'tab', title: 'Download', load: () => import('./download/view.js'), onDemand: true, style: true },
  { name: 'runtime', place: 'tab', title: 'Real runtime', load: () => import('./runtime/view.js'), onDemand: true, style: true },
  { name: 'hub', place: 'tab', title: 'Hugging Face', load: () => import('./hub/view.js'), onDemand: true, style: true, onHub: true },
  { name: 'inspector', place: 'aside', load: () => import('./inspector/view.js'), onDemand: true, style: true },
  { name: 'status', place: 'foot', load: () => import('./status/view.js'), style: true },
  { name: 'result', place: 'part', style: true },
  { name: 'predictions', place: 'part', onDemand: true, style: true },
  { name: 'sharing', place: 'part', onDemand: true },
  { name: 'link', place: 'part', onDemand: true },
  { name: 'embed', place: 'part', onDemand: true },
  { name: 'storage', place: 'part' },
];
