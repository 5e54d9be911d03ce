// @ts-check
/** A polite live region: at most one message in two seconds, the newest. */

import { h } from '../../library/dom.js';
import { plural, timeLeft } from '../../library/format.js';
import { effect } from '../../library/signals.js';
import { spoken } from '../../state/messages.js';
import { run } from '../../state/page.js';

const pause = 2000;
/** Interval of spoken progress, in milliseconds. */
const rhythm = 10_000;

class Status extends HTMLElement {
  connectedCallback() {
    const line = h('p', { class: 'unseen', role: 'status', 'aria-live': 'polite' });
    this.append(line);
    let spokenAt = -Infinity;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const speak = () => {
      spokenAt = performance.now();
      timer = undefined;
      line.textContent = spoken.peek();
    };
    effect(() => {
      void spoken.value;
      if (!timer) timer = setTimeout(speak, Math.max(0, spokenAt + pause - performance.now()));
    });
    let progressed = 0;
    effect(() => {
      const now = run.value;
      // The message about the start is finished first.
      if (!now?.samplesStarted || performance.now() - Math.max(progressed, now.samplesStarted) < rhythm) return;
      const { done = 0, of = 0, unit = '' } = now.progress;
      if (unit !== 'samples' || done === 0) return;
      progressed = performance.now();
      const left = ((performance.now() - now.samplesStarted) / done) * (of - done);
      spoken.value = `${done} of ${plural(of, 'sample')}, ${timeLeft(left)}.`;
    });
  }
}

customElements.define('octet-status', Status);
