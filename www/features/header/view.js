// @ts-check
/** The header: name, privacy, capabilities of the browser with reasons, theme. */

import { h } from '../../library/dom.js';
import { effect, signal } from '../../library/signals.js';
import { abilities, capabilities, engine, settings } from '../../state/page.js';
import { hubAddress } from '../../state/surroundings.js';
import { deleteStored } from '../storage/persistence.js';

const themes = [
  ['auto', 'Theme: as the system'],
  ['light', 'Theme: light'],
  ['dark', 'Theme: dark'],
];

class Header extends HTMLElement {
  connectedCallback() {
    this.append(
      h('header', { class: 'bar' },
        h('a', { class: 'brand', href: hubAddress ? 'hub.html' : './' }, h('img', { src: new URL('../../icon.svg', import.meta.url).href, alt: '', width: 28, height: 28 }), h('span', {}, 'Octet')),
        h('span', { class: 'tagline' }, 'ONNX models to int8, in this page'),
        h('span', { class: 'spring' }),
        privacy(),
        abilitySheet(),
        theme(),
      ),
    );
  }
}

/** On the page of a hub, what that one sees. The worker with samples and results is sealed there, too. */
function hubPrivacy() {
  const { host } = new URL(hubAddress);
  return h('details', { class: 'menu', name: 'menu' },
    h('summary', {}, h('span', { class: 'dot fair', 'aria-hidden': 'true' }), `Reads from ${host}`),
    h('div', { class: 'sheet' },
      h('p', {}, `This page may read from ${host} and the hosts that it sends files from. They see your search and which files you load. Your own models, samples and results are sent nowhere.`),
      h('p', {}, 'The worker that has them carries the policy ', h('code', {}, "connect-src 'self'"), '. So does ', h('a', { href: './' }, 'the main page'), ' as a whole, which can reach no other site.'),
      h('div', { class: 'row' }, h('button', { type: 'button', id: 'forget', onclick: () => void deleteStored() }, 'Forget everything')),
    ),
  );
}

function privacy() {
  if (hubAddress) return hubPrivacy();
  return h('details', { class: 'menu', name: 'menu' },
    h('summary', {}, h('span', { class: 'dot good', 'aria-hidden': 'true' }), 'Nothing leaves this machine'),
    h('div', { class: 'sheet' },
      h('p', {}, 'Your model and your samples are read by this page and go nowhere else. There is no upload, no account and no analytics.'),
      h('p', {}, 'You can check it: the page and its worker carry the policy ', h('code', {}, "connect-src 'self'"), ', under which the browser refuses to send anything to another site. The network tab of the developer tools stays empty during a run.'),
      h('p', {}, 'The search of Hugging Face is therefore ', h('a', { href: 'hub.html' }, 'a page of its own'), '.'),
      h('p', {}, 'So that a reload loses nothing, this browser keeps the model, the samples, the settings and the last result in its own storage, on this machine.'),
      h('div', { class: 'row' }, h('button', { type: 'button', id: 'forget', onclick: () => void deleteStored() }, 'Forget everything')),
    ),
  );
}

function abilitySheet() {
  const short = () => {
    const { state, noThreads } = engine.value;
    if (state === 'failed' || !capabilities.variant) return 'Engine: not running';
    if (state === 'starting') return 'Engine: starting';
    const used = noThreads ? 1 : Math.min(settings.value.threads, capabilities.threads);
    const threads = used > 1 ? `${used} threads` : '1 thread';
    return `${capabilities.variant === 'threads' ? 'Full build' : 'Baseline build'}, ${threads}`;
  };
  const level = () => {
    if (engine.value.state === 'failed') return 'dot bad';
    return abilities.value.every((one) => one.has) ? 'dot good' : 'dot fair';
  };
  return h('details', { class: 'menu', name: 'menu' },
    h('summary', {}, h('span', { class: level, 'aria-hidden': 'true' }), short),
    h('div', { class: 'sheet' },
      h('p', {}, () => engine.value.message || capabilities.reason),
      h('ul', { class: 'abilities' },
        () => abilities.value.map(({ name, has, why }) =>
          h('li', {}, h('span', { class: has ? 'mark good' : 'mark fair' }, has ? 'Yes' : 'No'), h('strong', {}, name), h('span', { class: 'why' }, why)),
        ),
      ),
    ),
  );
}

function theme() {
  const chosen = signal(stored());
  effect(() => {
    const root = document.documentElement;
    if (chosen.value === 'auto') root.removeAttribute('data-theme');
    else root.setAttribute('data-theme', chosen.value);
  });
  return h('select', {
    class: 'theme', 'aria-label': 'Theme', value: () => chosen.value,
    onchange: (/** @type {Event} */ event) => {
      chosen.value = /** @type {HTMLSelectElement} */ (event.target).value;
      try {
        localStorage.setItem('theme', chosen.value);
      } catch {
        // A private window may refuse storage; the choice then lasts until the page closes.
      }
    },
  }, ...themes.map(([value, text]) => h('option', { value }, text)));
}

function stored() {
  try {
    return localStorage.getItem('theme') ?? 'auto';
  } catch {
    return 'auto';
  }
}

// An open menu closes on a click elsewhere or on Escape.
document.addEventListener('pointerdown', (event) => {
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    if (event.target instanceof Node && !menu.contains(event.target)) menu.removeAttribute('open');
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  const menu = document.querySelector('details.menu[open]');
  if (!menu) return;
  event.preventDefault();
  menu.removeAttribute('open');
  menu.querySelector('summary')?.focus();
});

customElements.define('octet-header', Header);
