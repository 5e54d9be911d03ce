// A model so small that it is written here by hand: y = x + w, with w of four floats in another file.

/** @param {number} number @param {Buffer | string} content a length-delimited protobuf field */
function field(number, content) {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

/** @param {number} number @param {number} value below 128 */
const small = (number, value) => Buffer.from([number << 3, value]);

/** @param {number} size */
const shape = (size) => field(2, field(1, small(1, size)));

/** @param {string} name */
const port = (name) => Buffer.concat([field(1, name), field(2, field(1, Buffer.concat([small(1, 1), shape(4)])))]);

/** @param {string} key @param {string} value */
const entry = (key, value) => field(13, Buffer.concat([field(1, key), field(2, value)]));

/** @param {string} location @returns {Buffer} */
export function withExternalData(location) {
  const weight = Buffer.concat([
    small(1, 4), small(2, 1), field(8, 'w'),
    entry('location', location), entry('offset', '0'), entry('length', '16'), small(14, 1),
  ]);
  const node = Buffer.concat([field(1, 'x'), field(1, 'w'), field(2, 'y'), field(3, 'sum'), field(4, 'Add')]);
  const graph = Buffer.concat([field(1, node), field(2, 'g'), field(5, weight), field(11, port('x')), field(12, port('y'))]);
  // The graph is longer than 127 bytes, so its length takes two.
  const header = Buffer.from([(7 << 3) | 2, (graph.length & 0x7f) | 0x80, graph.length >> 7]);
  return Buffer.concat([small(1, 8), header, graph, field(8, small(2, 13))]);
}
