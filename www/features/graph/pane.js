// @ts-check
/**
 * One graph in a frame: panned by dragging or scrolling, zoomed, traversed with the arrow keys
 * along its edges.
 */

import { h, svg } from '../../library/dom.js';
import { count } from '../../library/format.js';
import { effect, signal, untracked } from '../../library/signals.js';
import { aborted, say } from '../../state/messages.js';
import { selected } from '../../state/page.js';
import { boxHeight, drawing, laidOut } from './drawing.js';

/** @import { Box, Drawing } from './drawing.js' */
/** @import { Known } from '../../state/graphs.js' */
/** @import { LayoutResult } from '../../types.js' */

/** The zoom factor of all panes; it is shared so that two graphs can be compared. */
const common = signal(0.9);
/** Number of nodes added at a time, so that the page stays responsive. */
const portion = 150;

/**
 * @param {string} label
 * @param {import('../../library/signals.js').Signal<Known>} known
 * @param {(name: string, operator: string, badge: string) => string} paint
 * @param {() => string} absent why there is nothing to see; `hidden` where nobody looks
 */
export function pane(label, known, paint, absent) {
  const content = svg('g');
  const picture = svg('svg', { class: 'graph-picture', 'aria-hidden': 'true' }, content);
  const note = h('p', { class: 'note pane-note' });
  const frame = h('div', { class: 'pane', tabindex: 0, role: 'application', 'aria-roledescription': 'graph', 'aria-label': `${label}. Down and up follow the edges, left and right go to neighbours, plus and minus zoom.` }, picture, note);
  const view = { x: 0, y: 0, scale: 1 };
  /**
   * The last observed size; reading it from the frame would force a layout of the whole picture.
   */
  const size = { width: 0, height: 0 };
  /** @type {{ plan: Drawing, laid: LayoutResult, groups: SVGGElement[] } | null} */
  let shown = null;
  /** @type {AbortController | null} */
  let working = null;

  function place() {
    content.setAttribute('transform', `translate(${view.x.toFixed(1)} ${view.y.toFixed(1)}) scale(${view.scale.toFixed(4)})`);
    common.value = view.scale;
  }
  /** @param {number} factor @param {number} [x] @param {number} [y] */
  function zoom(factor, x = size.width / 2, y = size.height / 2) {
    const scale = Math.min(3, Math.max(0.03, view.scale * factor));
    view.x = x - ((x - view.x) * scale) / view.scale;
    view.y = y - ((y - view.y) * scale) / view.scale;
    view.scale = scale;
    place();
  }
  function fit() {
    if (!shown || size.width === 0) return;
    const { width, height } = shown.laid;
    view.scale = Math.min(1, size.width / (width || 1), size.height / (height || 1));
    view.x = (size.width - width * view.scale) / 2;
    view.y = Math.max(0, (size.height - height * view.scale) / 2);
    place();
  }
  /** Shows the top of the graph at a readable size. */
  function begin() {
    if (!shown) return;
    view.scale = 0.9;
    const first = shown.laid.nodes[0] ?? 0;
    view.x = size.width / 2 - first * view.scale;
    view.y = 10;
    place();
  }
  /** @param {number} at */
  function centre(at) {
    if (!shown || size.width === 0) return;
    view.scale = Math.max(view.scale, 0.6);
    view.x = size.width / 2 - shown.laid.nodes[at * 2] * view.scale;
    view.y = size.height / 2 - shown.laid.nodes[at * 2 + 1] * view.scale;
    place();
  }
  const chosen = () => shown?.plan.boxes.findIndex((box) => box.name !== '' && box.name === selected.peek()) ?? -1;

  function mark() {
    if (!shown) return;
    const at = chosen();
    shown.groups.forEach((group, index) => group.classList.toggle('chosen', index === at));
    if (at < 0) return;
    const [x, y] = [shown.laid.nodes[at * 2] * view.scale + view.x, shown.laid.nodes[at * 2 + 1] * view.scale + view.y];
    if (x < 60 || y < 30 || x > size.width - 60 || y > size.height - 30 || view.scale < 0.35) centre(at);
  }
  function repaint() {
    shown?.groups.forEach((group, index) => {
      const { name, operator, badge } = shown?.plan.boxes[index] ?? { name: '', operator: '', badge: '' };
      const kind = `box ${paint(name, operator, badge)}`;
      if (group.getAttribute('class') !== kind) group.setAttribute('class', kind);
    });
  }

  effect(() => {
    const why = absent();
    const { indexed, failure } = known.value;
    working?.abort();
    note.textContent = why === 'hidden' ? '' : why || failure || (indexed ? '' : 'Reading the graph.');
    if (why || !indexed) {
      shown = null;
      content.replaceChildren();
      return;
    }
    untracked(() => void draw(drawing(indexed)));
  });
  effect(() => {
    void selected.value;
    untracked(mark);
  });
  effect(() => {
    const scale = common.value;
    untracked(() => shown && Math.abs(scale - view.scale) > 1e-6 && zoom(scale / view.scale));
  });
  effect(() => {
    // Subscribes to the signals that determine the colours.
    paint('', '', '');
    paint(' ', '', '');
    untracked(() => (repaint(), mark()));
  });

  /** @param {Drawing} plan */
  async function draw(plan) {
    const mine = (working = new AbortController());
    note.textContent = `Laying out ${count(plan.boxes.length)} nodes.`;
    try {
      const laid = await laidOut(plan, mine.signal);
      content.replaceChildren();
      const edges = svg('g', { class: 'edges' });
      const nodes = svg('g');
      content.append(edges, nodes);
      /** @type {SVGGElement[]} */
      const groups = [];
      for (let from = 0; from < Math.max(plan.boxes.length, laid.edges.length); from += portion) {
        edges.append(...laid.edges.slice(from, from + portion).map((corners) => svg('path', { d: line(corners) })));
        const drawn = plan.boxes.slice(from, from + portion).map((box, index) => group(box, laid, from + index));
        nodes.append(...drawn);
        groups.push(...drawn);
        await new Promise((next) => setTimeout(next));
        if (mine.signal.aborted) return;
      }
      const again = shown !== null;
      shown = { plan, laid, groups };
      note.textContent = '';
      repaint();
      if (!again) begin();
      mark();
    } catch (error) {
      if (!aborted(error)) note.textContent = `${/** @type {Error} */ (error).message}. The table of layers has the same nodes.`;
    }
  }

  /** @param {Box} box @param {LayoutResult} laid @param {number} at */
  function group(box, laid, at) {
    const [x, y] = [laid.nodes[at * 2], laid.nodes[at * 2 + 1]];
    const drawn = svg('g', { class: `box ${untracked(() => paint(box.name, box.operator, box.badge))}`, transform: `translate(${(x - box.width / 2).toFixed(1)} ${(y - boxHeight / 2).toFixed(1)})` },
      svg('rect', { width: box.width.toFixed(1), height: boxHeight, rx: box.name ? 7 : 19 }),
      svg('text', { x: 10, y: box.name ? 16 : 24, class: 'box-operator' }, box.operator));
    if (box.name) drawn.append(svg('text', { x: 10, y: 30, class: 'box-name' }, shortened(box.name, box.width)));
    if (box.badge) drawn.append(svg('text', { x: (box.width - 8).toFixed(1), y: box.name ? 16 : 24, 'text-anchor': 'end', class: 'box-badge' }, box.badge));
    drawn.append(svg('title', {}, box.name || box.operator));
    if (box.name) drawn.addEventListener('click', () => (selected.value = box.name));
    return drawn;
  }

  let wide = 0;
  new ResizeObserver(([{ contentRect }]) => {
    [size.width, size.height] = [contentRect.width, contentRect.height];
    // The center of the view stays in place.
    const now = size.width;
    if (wide > 0 && now > 0) {
      view.x += (now - wide) / 2;
      place();
    } else if (now > 0 && wide === 0 && shown) {
      begin();
      mark();
    }
    wide = now;
  }).observe(frame);

  frame.addEventListener('wheel', (event) => {
    event.preventDefault();
    const box = frame.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) return zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    view.x -= event.shiftKey ? event.deltaY : event.deltaX;
    view.y -= event.shiftKey ? 0 : event.deltaY;
    place();
  }, { passive: false });
  frame.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const start = { x: event.clientX - view.x, y: event.clientY - view.y, moved: false };
    const move = (/** @type {PointerEvent} */ at) => {
      // A small movement is still a click.
      if (!start.moved && Math.hypot(at.clientX - event.clientX, at.clientY - event.clientY) < 4) return;
      if (!start.moved) frame.setPointerCapture(event.pointerId);
      start.moved = true;
      [view.x, view.y] = [at.clientX - start.x, at.clientY - start.y];
      place();
    };
    const end = () => {
      frame.removeEventListener('pointermove', move);
      frame.removeEventListener('pointerup', end);
      frame.removeEventListener('pointercancel', end);
    };
    frame.addEventListener('pointermove', move);
    frame.addEventListener('pointerup', end);
    frame.addEventListener('pointercancel', end);
  });
  frame.addEventListener('keydown', (event) => {
    if (event.key === '+' || event.key === '=') zoom(1.25);
    else if (event.key === '-') zoom(0.8);
    else if (event.key === '0') fit();
    else if (!walk(event.key)) return;
    event.preventDefault();
  });

  /** @param {string} key @returns {boolean} whether the key goes somewhere */
  function walk(key) {
    if (!shown || !/^(Arrow(Down|Up|Left|Right)|Home|End)$/.test(key)) return false;
    const { plan, laid } = shown;
    const at = chosen();
    const named = (/** @type {number[]} */ list) => list.filter((one) => plan.boxes[one].name !== '');
    const all = named(plan.boxes.map((_, index) => index));
    const x = (/** @type {number} */ one) => laid.nodes[one * 2];
    let to = at < 0 || key === 'Home' ? all[0] : key === 'End' ? all[all.length - 1] : undefined;
    if (to === undefined && key === 'ArrowDown') to = named(plan.after[at])[0];
    if (to === undefined && key === 'ArrowUp') to = named(plan.before[at])[0];
    if (to === undefined && /Left|Right/.test(key)) {
      // Siblings: nodes with a common predecessor or successor.
      const beside = named([...new Set([...plan.before[at].flatMap((one) => plan.after[one]), ...plan.after[at].flatMap((one) => plan.before[one])])]).sort((a, b) => x(a) - x(b));
      to = beside[beside.indexOf(at) + (key === 'ArrowRight' ? 1 : -1)];
    }
    if (to === undefined) say('There is no further node that way.');
    else {
      const { name, operator, badge } = plan.boxes[to];
      selected.value = name;
      say(`${operator} ${name}${badge ? `, ${badge}` : ''}`);
    }
    return true;
  }

  const button = (/** @type {string} */ text, /** @type {string} */ name, /** @type {() => void} */ act) => h('button', { type: 'button', class: 'small', 'aria-label': `${name}, ${label}`, onclick: act }, text);
  return [
    h('div', { class: 'row spread pane-head' }, h('h3', {}, label), h('span', { class: 'row zooms' }, button('+', 'Zoom in', () => zoom(1.25)), button('−', 'Zoom out', () => zoom(0.8)), button('Fit', 'Fit', fit))),
    frame,
  ];
}

/** Corners as a smooth line. @param {Float32Array} corners x and y in turns */
function line(corners) {
  let path = `M${corners[0].toFixed(1)} ${corners[1].toFixed(1)}`;
  for (let at = 2; at < corners.length; at += 2) {
    const [x, y] = [corners[at], corners[at + 1]];
    if (at + 2 >= corners.length) path += `L${x.toFixed(1)} ${y.toFixed(1)}`;
    else path += `Q${x.toFixed(1)} ${y.toFixed(1)} ${((x + corners[at + 2]) / 2).toFixed(1)} ${((y + corners[at + 3]) / 2).toFixed(1)}`;
  }
  return path;
}

/**
 * The end of a name is more specific than its beginning.
 *
 * @param {string} name
 * @param {number} width
 */
function shortened(name, width) {
  const letters = Math.floor((width - 18) / 5.6);
  return name.length <= letters ? name : `…${name.slice(-(letters - 1))}`;
}
