// @ts-check
/**
 * `<octet-studio>`: the studio as an element of any page (docs/embedding.md).
 *
 *     <script type="module" src="https://example.org/octet/www/element.js"></script>
 *     <octet-studio model="models/small.onnx" panels="overview,layers"></octet-studio>
 *
 * The element shows `embed.html` in a frame, so that neither page changes the style of the other,
 * and talks to it through a port.
 */

/** @import { QuantizationSummary, Settings } from './types.js' */

/** Versions of the protocol that this element speaks. */
const versions = [1];

/** The style of the frame, which no rule of the page changes. */
const frameStyle = { border: '0', margin: '0', padding: '0', width: '100%', height: '100%', 'min-height': '0', 'max-width': 'none', display: 'block', 'color-scheme': 'light dark' };

/** Time in milliseconds that the studio's page has to answer once its frame is loaded. */
const patience = 15_000;

/** @typedef {{ name: string, bytesBefore: number, bytesAfter: number, settings: Settings, summary: QuantizationSummary }} StudioResult */
/** @typedef {{ stage: string, done?: number, of?: number, unit?: string }} StudioProgress */
/** @typedef {{ title: string, message: string, next: string }} StudioError */
/** @typedef {File | Blob | Uint8Array<ArrayBuffer> | { path: string, blob: Blob }} StudioFile */

/** The address of the page for frames, if the element does not say so. */
let home = new URL('../embed.html', import.meta.url).href;

/** Sets the address of `embed.html` for all elements that name none. @param {string | URL} address */
export function setStudioAddress(address) {
  home = new URL(address, document.baseURI).href;
}

/** The studio as an element. */
export class OctetStudioElement extends HTMLElement {
  static observedAttributes = ['src', 'model', 'samples', 'settings', 'panels', 'readonly'];

  #frame = document.createElement('iframe');
  /** @type {MessagePort | null} */
  #port = null;
  /** @type {Map<number, { resolve: (value: any) => void, reject: (reason: Error) => void }>} */
  #asked = new Map();
  #next = 1;
  /** Messages that wait for the frame. @type {Record<string, unknown>[]} */
  #waiting = [];
  #ready = false;
  #refusal = '';
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #late;
  /** @type {(event: MessageEvent) => void} */
  #heard = (event) => this.#greet(event);

  constructor() {
    super();
    this.#frame.title = 'Octet: quantize a model';
    this.#frame.allow = 'cross-origin-isolated; clipboard-write';
    this.#frame.addEventListener('load', () => this.#await());
    // A sheet of this kind needs no permission of the page's policy.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(':host { display: block; height: 40rem; } :host([hidden]) { display: none; }');
    const root = this.attachShadow({ mode: 'open' });
    root.adoptedStyleSheets = [sheet];
    root.append(document.createElement('slot'));
    for (const [property, value] of Object.entries(frameStyle)) this.#frame.style.setProperty(property, value, 'important');
  }

  connectedCallback() {
    addEventListener('message', this.#heard);
    // Not in the shadow root: frames there are missing from the page's list, by which the studios
    // find one another's wasm.
    this.replaceChildren(this.#frame);
    this.#load();
  }

  disconnectedCallback() {
    removeEventListener('message', this.#heard);
    clearTimeout(this.#late);
    this.#end('The studio was removed from the page.');
    this.#frame.removeAttribute('src');
  }

  /** @param {string} name @param {string | null} before @param {string | null} now */
  attributeChangedCallback(name, before, now) {
    if (!this.isConnected || before === now || !this.#frame.hasAttribute('src')) return;
    if (name === 'src') return this.#load();
    if (name === 'panels' || name === 'readonly') return void this.#ask('set', { panels: this.#panels(), readonly: this.hasAttribute('readonly') }).catch(() => {});
    // Attributes that change together open once.
    queueMicrotask(() => this.#openAttributes());
  }

  /** The address of the studio's page. */
  get #address() {
    return new URL(this.getAttribute('src') ?? home, document.baseURI);
  }

  #panels() {
    return this.hasAttribute('panels') ? (this.getAttribute('panels') ?? '').split(/[\s,]+/).filter(Boolean) : null;
  }

  /** Files of the attributes, relative to this page. */
  #files() {
    const absolute = (/** @type {string} */ path) => new URL(path, document.baseURI).href;
    const samples = (this.getAttribute('samples') ?? '').split(/\s+/).filter(Boolean).map(absolute);
    const [model, settings] = ['model', 'settings'].map((name) => this.getAttribute(name)).map((path) => (path ? absolute(path) : ''));
    return { model, samples, settings };
  }

  #load() {
    this.#end('The studio was loaded anew.');
    this.#refusal = '';
    const address = this.#address;
    const panels = this.#panels();
    if (panels) address.searchParams.set('panels', panels.join(','));
    if (this.hasAttribute('readonly')) address.searchParams.set('readonly', '');
    this.#frame.src = address.href;
    this.#opened = '';
    this.#openAttributes();
  }

  /** The files that the attributes opened last. */
  #opened = '';

  #openAttributes() {
    const files = this.#files();
    const wanted = JSON.stringify(files);
    if (!files.model || wanted === this.#opened) return;
    this.#opened = wanted;
    // A failure arrives as the event `octet-error`, too.
    this.#ask('openLink', files).catch(() => {});
  }

  /** Browsers tell a page nothing of a frame that was forbidden or is absent, but its load. */
  #await() {
    clearTimeout(this.#late);
    this.#late = setTimeout(() => !this.#port && this.#refuse(`The studio at ${this.#address.href} does not answer. Check that the address is that of embed.html, and that its host allows pages of ${location.origin} to frame it.`), patience);
  }

  /** @param {string} message */
  #refuse(message) {
    this.#refusal = message;
    this.#end(message);
    this.#tell('octet-error', { title: 'The studio cannot be used here', message, next: '' });
  }

  /** Answers the frame, and no other window. @param {MessageEvent} event */
  #greet({ source, origin, data }) {
    if (source !== this.#frame.contentWindow || origin !== this.#address.origin || data?.octet !== 'waiting') return;
    // A frame that greets again was loaded anew: answers to earlier questions do not come.
    if (this.#port) {
      this.#end('The studio was loaded anew.');
      this.#opened = '';
      this.#openAttributes();
    }
    const channel = new MessageChannel();
    this.#port = channel.port1;
    this.#port.onmessage = (event) => this.#hear(event.data);
    this.#frame.contentWindow?.postMessage({ octet: 'hello', versions }, origin, [channel.port2]);
  }

  /** @param {any} message */
  #hear({ type, ...message }) {
    if (type === 'ready') {
      this.#ready = true;
      for (const waiting of this.#waiting.splice(0)) this.#port?.postMessage(waiting);
      return this.#tell('octet-ready', message);
    }
    if (type === 'refused') {
      return this.#refuse(message.message);
    }
    if (type === 'answer') {
      const asked = this.#asked.get(message.id);
      this.#asked.delete(message.id);
      return message.failure === undefined ? asked?.resolve(message.value) : asked?.reject(new Error(message.failure));
    }
    if (type === 'progress' || type === 'error') this.#tell(`octet-${type}`, message);
    if (type === 'result') this.#tell('octet-result', message.result);
  }

  /** @param {string} name @param {unknown} detail */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** @param {string} why */
  #end(why) {
    this.#port?.close();
    this.#port = null;
    this.#ready = false;
    this.#waiting = [];
    for (const { reject } of this.#asked.values()) reject(new Error(why));
    this.#asked.clear();
  }

  /** @param {string} command @param {object} [asked] @returns {Promise<any>} */
  #ask(command, asked = {}) {
    if (this.#refusal) return Promise.reject(new Error(this.#refusal));
    if (!this.isConnected) return Promise.reject(new Error('The studio is not part of a page: append the element first.'));
    // What was set before a call is opened before it.
    if (command !== 'openLink') this.#openAttributes();
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#asked.set(id, { resolve, reject });
      const message = { id, command, ...asked };
      if (this.#port && this.#ready) this.#port.postMessage(message);
      else this.#waiting.push(message);
    });
  }

  /**
   * Opens a model, with the files of its weights.
   *
   * @param {StudioFile | StudioFile[]} files
   * @returns {Promise<void>}
   */
  open(files) {
    return this.#ask('open', { files: named([files].flat(), 'model.onnx') });
  }

  /**
   * Adds samples to the open model.
   *
   * @param {StudioFile | StudioFile[]} files
   * @returns {Promise<void>}
   */
  addSamples(files) {
    return this.#ask('addSamples', { files: named([files].flat(), 'sample.npy') });
  }

  /**
   * Quantizes the open model. It waits for what is being opened.
   *
   * @param {Settings} [settings] in place of those in the studio
   * @returns {Promise<StudioResult>}
   */
  quantize(settings) {
    return this.#ask('quantize', { settings });
  }

  /** Cancels what runs. @returns {Promise<void>} */
  cancel() {
    return this.#ask('cancel');
  }

  /**
   * The last result with the bytes of its file and its report; `null` if there is none.
   *
   * @returns {Promise<(StudioResult & { bytes: Uint8Array<ArrayBuffer>, report: string }) | null>}
   */
  async result() {
    const found = await this.#ask('result');
    if (!found) return null;
    const { file, ...rest } = found;
    return { ...rest, bytes: new Uint8Array(await file.arrayBuffer()) };
  }
}

/** @param {StudioFile[]} files @param {string} otherwise the name of bytes without one */
const named = (files, otherwise) => files.map((file) => {
  if (file instanceof File) return { path: file.name, blob: file };
  if (file instanceof Blob) return { path: otherwise, blob: file };
  return file instanceof Uint8Array ? { path: otherwise, blob: new Blob([file]) } : file;
});

if (!customElements.get('octet-studio')) customElements.define('octet-studio', OctetStudioElement);
