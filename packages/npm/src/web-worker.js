// @ts-check
/** A worker thread of Node with the interface of a page's `Worker`. */

import { Worker } from 'node:worker_threads';

/** It keeps the process alive only while its starter waits for something else, such as a timer. */
export class WebWorker extends EventTarget {
  #thread;

  /** @param {string | URL} script @param {{ name?: string }} [options] */
  constructor(script, { name = '' } = {}) {
    super();
    this.#thread = new Worker(new URL(script), { name, workerData: { name } });
    this.#thread.on('message', (data) => this.dispatchEvent(new MessageEvent('message', { data })));
    this.#thread.on('error', (error) => this.dispatchEvent(Object.assign(new Event('error', { cancelable: true }), { message: error.message })));
    // After the listeners, which would hold the process again.
    this.#thread.unref();
  }

  /** @param {any} data @param {any[]} [transfer] */
  postMessage(data, transfer) {
    this.#thread.postMessage(data, transfer);
  }

  terminate() {
    void this.#thread.terminate();
  }
}
