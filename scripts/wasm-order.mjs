// @ts-check
// Makes a wasm module smaller for the network: removes functions that are equal, and puts functions
// that resemble each other side by side, since gzip only looks back 32 kB. Generic code is compiled
// again for every type, and the compiler leaves these copies far apart. docs/building.md has the
// figures.

import binaryen from 'binaryen';

/** Bytes of a piece of code that two functions may share. */
const PIECE = 16;
/** Marks of a function: the more there are, the less the functions of a group have in common. */
const MARKS = 32;
const IMPORTS = 2, CODE = 10;

/** Reads the parts of a module. */
class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  /** A number in LEB128. */
  number() {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  }

  /** Bytes behind their length. */
  sized() {
    const length = this.number();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  limits() {
    const flags = this.bytes[this.at++];
    this.number();
    if (flags & 1) this.number();
  }

  /** Passes an import; true for that of a function. */
  isFunctionImport() {
    this.sized();
    this.sized();
    const kind = this.bytes[this.at++];
    if (kind === 0) this.number();
    else if (kind === 1) this.at += 1;
    else if (kind === 3) this.at += 2;
    else if (kind > 3) throw new Error(`an import of kind ${kind} is not known`);
    if (kind === 1 || kind === 2) this.limits();
    return kind === 0;
  }
}

/**
 * The number of imported functions, and the code of the others.
 *
 * @param {Uint8Array} bytes
 */
function functions(bytes) {
  let imported = 0;
  /** @type {Uint8Array[]} */
  let bodies = [];
  const sections = new Reader(bytes);
  for (sections.at = 8; sections.at < bytes.length; ) {
    const kind = bytes[sections.at++];
    const inside = new Reader(sections.sized());
    if (kind !== IMPORTS && kind !== CODE) continue;
    const entries = Array.from({ length: inside.number() });
    if (kind === IMPORTS) imported = entries.filter(() => inside.isFunctionImport()).length;
    else bodies = entries.map(() => inside.sized());
  }
  return { imported, bodies };
}

const factors = Array.from({ length: MARKS }, (_, place) => Math.imul(place + 1, 0x9e3779b1) | 1);

/**
 * The marks of a function: for each factor, the smallest product with a hash of a piece (MinHash).
 * Two functions share a mark as often as they share pieces.
 *
 * @param {Uint8Array} body
 */
function marks(body) {
  const least = new Uint32Array(MARKS).fill(0xffffffff);
  const [base, out] = [0x01000193, power(0x01000193, PIECE)];
  let hash = 0;
  for (let at = 0; at < body.length; at += 1) {
    hash = Math.imul(hash, base) + body[at] | 0;
    if (at >= PIECE) hash = hash - Math.imul(out, body[at - PIECE]) | 0;
    if (at < PIECE - 1) continue;
    const mixed = Math.imul(hash ^ hash >>> 15, 0x2c1b3c6d);
    for (let place = 0; place < MARKS; place += 1) {
      const product = Math.imul(mixed ^ mixed >>> 13, factors[place]) >>> 0;
      if (product < least[place]) least[place] = product;
    }
  }
  return least;
}

/** @param {number} base @param {number} exponent */
const power = (base, exponent) => Array.from({ length: exponent }).reduce((/** @type {number} */ product) => Math.imul(product, base), 1);

/**
 * The order in which functions resemble each other: each joins the group with which it shares the
 * most marks, or begins one.
 *
 * @param {Uint8Array[]} bodies
 */
export function similar(bodies) {
  /** @type {Map<number, number>[]} */
  const groupOf = Array.from({ length: MARKS }, () => new Map());
  /** @type {number[][]} */
  const groups = [];
  bodies.forEach((body, index) => {
    const own = marks(body);
    /** @type {Map<number, number>} */
    const shared = new Map();
    own.forEach((mark, place) => {
      const group = groupOf[place].get(mark);
      if (group !== undefined) shared.set(group, (shared.get(group) ?? 0) + 1);
    });
    const [best] = [...shared].reduce((one, other) => (other[1] > one[1] ? other : one), [groups.length, 0]);
    (groups[best] ??= []).push(index);
    own.forEach((mark, place) => groupOf[place].has(mark) || groupOf[place].set(mark, best));
  });
  return groups.flat();
}

/** @param {number} value */
function leb(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push(value & 127 | 128);
  return [...bytes, value];
}

/**
 * The module with names by which its functions have this order.
 *
 * @param {Uint8Array} bytes
 */
function named(bytes) {
  const { imported, bodies } = functions(bytes);
  const places = similar(bodies);
  const rank = new Uint32Array(bodies.length);
  places.forEach((index, place) => { rank[index] = place; });
  const name = (/** @type {number} */ index) => (index < imported ? `i${index}` : `f${String(rank[index - imported]).padStart(8, '0')}`);
  const count = imported + bodies.length;
  const names = Array.from({ length: count }, (_, index) => [...leb(index), ...leb(name(index).length), ...Buffer.from(name(index))]).flat();
  const map = [...leb(count), ...names];
  const content = [4, ...Buffer.from('name'), 1, ...leb(map.length), ...map];
  return Buffer.concat([bytes, Buffer.from([0, ...leb(content.length)]), Buffer.from(content)]);
}

const { Atomics, BulkMemory, BulkMemoryOpt, CallIndirectOverlong, Multivalue, MutableGlobals, NontrappingFPToInt, ReferenceTypes, RelaxedSIMD, SIMD128, SignExt } = binaryen.Features;
/** The features that a module may use. Others would let binaryen write forms that browsers do not read yet. */
const used = Atomics | BulkMemory | BulkMemoryOpt | CallIndirectOverlong | Multivalue | MutableGlobals | NontrappingFPToInt | ReferenceTypes | RelaxedSIMD | SIMD128 | SignExt;

/**
 * Gives the same module, smaller when compressed.
 *
 * @param {Uint8Array} bytes
 */
export function ordered(bytes) {
  const module = binaryen.readBinary(named(bytes));
  module.setFeatures(used);
  module.runPasses(['duplicate-function-elimination', 'reorder-functions-by-name']);
  const made = module.emitBinary();
  module.dispose();
  return made;
}
