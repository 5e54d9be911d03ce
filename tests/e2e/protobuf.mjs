// Fields of protobuf messages, read and written. Imports nothing: tests serve it to the page, too.

/** @typedef {{ number: number, content: Uint8Array, whole: Uint8Array }} Field */

/** The fields of a message. @param {Uint8Array} bytes @returns {Field[]} */
export function fields(bytes) {
  let at = 0;
  const varint = () => {
    let [value, factor] = [0, 1];
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      factor *= 128;
      if (byte < 128) return value;
    }
  };
  const found = [];
  while (at < bytes.length) {
    const start = at;
    const tag = varint();
    const type = tag & 7;
    let from = at;
    if (type === 0) varint();
    else if (type === 2) {
      const length = varint();
      from = at;
      at += length;
    } else at += type === 5 ? 4 : 8;
    found.push({ number: tag >>> 3, content: bytes.subarray(from, at), whole: bytes.subarray(start, at) });
  }
  return found;
}

/** @param {number} value */
function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}

/** @param {Uint8Array[]} parts */
export function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** @param {number} number @param {Uint8Array | string} content */
export function field(number, content) {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  return joined([Uint8Array.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
}

/** @param {Uint8Array} bytes */
export const text = (bytes) => new TextDecoder().decode(bytes);
