// @ts-check
/** Predictions in the HTML report: a few samples with their pictures, those that differ first. */

import { h } from '../../library/dom.js';
import { figuresOf, namingFor } from './figures.js';
import { countOf, difference, worstFirst } from './words.js';

/** @import { SampleAnswer } from '../../types.js' */

/** Samples in a report. */
const most = 4;

/**
 * The report with a section on the predictions before its last part.
 *
 * @param {string} report
 * @param {SampleAnswer[]} answers
 */
export async function withPredictions(report, answers) {
  const section = h('section', { id: 'predictions' }, h('h2', {}, 'Predictions of both models'), h('p', {}, countOf(answers)));
  for (const shown of worstFirst(answers).slice(0, most)) {
    section.append(h('h3', {}, shown.sample), h('p', {}, difference(shown.answer, namingFor(shown.answer))), ...await figuresOf(shown, answers));
  }
  // In a document that loads nothing: this page forbids pictures in addresses, and the report does not.
  const page = document.implementation.createHTMLDocument();
  const copy = page.importNode(section, true);
  const canvases = section.querySelectorAll('canvas');
  for (const [at, blank] of copy.querySelectorAll('canvas').entries()) {
    const image = page.createElement('img');
    image.width = Math.min(canvases[at].width, 320);
    image.alt = canvases[at].getAttribute('aria-label') ?? '';
    image.src = canvases[at].toDataURL(canvases[at].classList.contains('waveform') ? 'image/png' : 'image/jpeg', 0.8);
    blank.replaceWith(image);
  }
  for (const swatch of copy.querySelectorAll('span')) {
    if (swatch.className !== 'swatch') continue;
    swatch.style.color = swatch.style.background || 'transparent';
    swatch.textContent = '■';
  }
  // What can't be used on paper, or needs the page's style.
  for (const part of copy.querySelectorAll('button, .share-bar')) part.remove();
  const style = page.createElement('style');
  style.textContent = '#predictions figure{display:inline-block;vertical-align:top;margin:0 1rem 1rem 0;max-width:100%}#predictions img{max-width:100%;height:auto;display:block}';
  copy.prepend(style);
  const at = report.lastIndexOf('<details>');
  return at < 0 ? report : report.slice(0, at) + copy.outerHTML + report.slice(at);
}
