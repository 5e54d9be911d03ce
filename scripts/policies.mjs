// @ts-check
// The content security policies of the pages. Each page also states its own in a meta element, for
// hosts that can't send headers. Only a header can say who may frame a page.

/**
 * The policy of the page and of every script and worker. `connect-src 'self'` is the privacy
 * promise. `wasm-unsafe-eval` permits compiling WebAssembly and nothing else. wasm-bindgen-rayon
 * starts its threads from a `blob:` of its own script. `blob:` images are thumbnails of the user's
 * samples.
 */
export const policy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The model hub of `hub.html`. */
export const defaultHub = 'https://huggingface.co';

/** The hub, and the hosts that it sends files from. */
const defaultHubSources = 'https://huggingface.co https://*.huggingface.co https://*.hf.co';

/** @param {string} hub */
const sourcesOf = (hub) => (hub === defaultHub ? defaultHubSources : hub);

/**
 * The policy that the header of a file states.
 *
 * @param {string} name of the file
 * @param {{ hub?: string, embedders?: string[] }} [options]
 */
export function policyOf(name, { hub = defaultHub, embedders = [] } = {}) {
  if (name === 'hub.html') return policy.replace("connect-src 'self'", `connect-src 'self' ${sourcesOf(hub)}`);
  if (name === 'embed.html') return policy.replace("frame-ancestors 'none'", ["frame-ancestors 'self'", ...embedders].join(' '));
  return policy;
}

/**
 * `hub.html` or `embed.html` for another hub, and for pages of other origins that may frame it.
 *
 * @param {string} page
 * @param {string} hub
 * @param {string[]} embedders
 */
export function forHost(page, hub, embedders) {
  for (const origin of [hub, ...embedders]) {
    if (new URL(origin).origin !== origin) throw new Error(`${origin} is no origin: give scheme, host and port alone, such as https://models.example.`);
  }
  return page.replace(`connect-src 'self' ${defaultHubSources}`, `connect-src 'self' ${sourcesOf(hub)}`)
    .replace(`name="octet-hub" content="${defaultHub}"`, `name="octet-hub" content="${hub}"`)
    .replace('name="octet-embedders" content=""', `name="octet-embedders" content="${embedders.join(' ')}"`);
}
