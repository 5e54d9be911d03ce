// @ts-check
/**
 * Reads and writes the part of YAML that settings documents need: mappings and lists by
 * indentation, `[…]` and `{…}` on one line, quoted and plain scalars, comments. JSON is accepted,
 * too. Anything else (anchors, tags, multi-line text) is an error with its line number.
 */

/** A syntax error with its line. */
export class YamlError extends Error {
  /** @param {number} line @param {string} reason */
  constructor(line, reason) {
    super(`line ${line}: ${reason}`);
    this.name = 'YamlError';
  }
}

/** @typedef {{ indent: number, text: string, number: number }} Line */

/** @param {string} text @returns {any} an empty document is an empty mapping */
export function parse(text) {
  // Settings that `octet search` writes are JSON below a comment.
  const trimmed = text.replace(/^(?:\s*#.*(?:\n|$))+/, '').trim();
  if (/^[{[]/.test(trimmed)) {
    try {
      return JSON.parse(trimmed);
    } catch (error) {
      // JSON over several lines can't be valid YAML of this subset.
      if (trimmed.includes('\n')) throw new YamlError(1, `this looks like JSON but is not valid (${/** @type {Error} */ (error).message})`);
    }
  }
  /** @type {Line[]} */
  const lines = [];
  text.split(/\r?\n/).forEach((raw, index) => {
    const content = withoutComment(raw).trimEnd();
    if (content.trim() === '' || content === '---') return;
    const indent = content.length - content.trimStart().length;
    if (content.slice(0, indent).includes('\t')) throw new YamlError(index + 1, 'indented with a tab; use spaces');
    lines.push({ indent, text: content.trimStart(), number: index + 1 });
  });
  if (lines.length === 0) return {};
  const at = { line: 0 };
  const value = block(lines, at, lines[0].indent);
  if (at.line < lines.length) throw new YamlError(lines[at.line].number, 'indented less than the block it belongs to');
  return value;
}

/** @param {string} line */
function withoutComment(line) {
  let quote = '';
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at];
    if (quote) {
      if (letter === '\\' && quote === '"') at += 1;
      else if (letter === quote) quote = '';
    } else if ((letter === '"' || letter === "'") && !/[^\s[{,:]/.test(line[at - 1] ?? ' ')) quote = letter;
    else if (letter === '#' && (at === 0 || /\s/.test(line[at - 1]))) return line.slice(0, at);
  }
  return line;
}

/** @param {Line[]} lines @param {{ line: number }} at @param {number} indent @returns {any} */
function block(lines, at, indent) {
  const first = lines[at.line];
  if (/^-( |$)/.test(first.text)) return list(lines, at, indent);
  if (!split(first)) {
    at.line += 1;
    return scalar(first.text, first.number);
  }
  /** @type {Record<string, unknown>} */
  const mapping = {};
  while (at.line < lines.length && lines[at.line].indent === indent) {
    const line = lines[at.line];
    const pair = split(line);
    if (!pair) throw new YamlError(line.number, `expected \`key: value\`, found \`${line.text}\``);
    const [key, rest] = pair;
    if (Object.hasOwn(mapping, key)) throw new YamlError(line.number, `the key \`${key}\` appears twice`);
    at.line += 1;
    const next = lines[at.line];
    // A list may have the same indentation as its key.
    const inner = next && (next.indent > indent || (next.indent === indent && /^-( |$)/.test(next.text)));
    const value = rest !== '' ? scalar(rest, line.number) : inner ? block(lines, at, next.indent) : null;
    Object.defineProperty(mapping, key, { value, enumerable: true, writable: true, configurable: true });
    if (at.line < lines.length && lines[at.line].indent > indent) throw new YamlError(lines[at.line].number, 'indented more than the line it follows');
  }
  return mapping;
}

/** @param {Line[]} lines @param {{ line: number }} at @param {number} indent */
function list(lines, at, indent) {
  const items = [];
  while (at.line < lines.length && lines[at.line].indent === indent && /^-( |$)/.test(lines[at.line].text)) {
    const line = lines[at.line];
    const rest = line.text.slice(1).trimStart();
    if (rest === '' || split({ ...line, text: rest })) throw new YamlError(line.number, 'a list can hold plain values only');
    items.push(scalar(rest, line.number));
    at.line += 1;
  }
  return items;
}

/** @param {Line} line @returns {[string, string] | null} key and what follows it */
function split({ text, number }) {
  const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?:\s+(.*))?$/.exec(text);
  if (quoted) return [String(scalar(quoted[1], number)), quoted[2] ?? ''];
  const plain = /^([^\s[{"'][^]*?):(?:\s+(.*))?$/.exec(text);
  return plain ? [plain[1].trim(), plain[2] ?? ''] : null;
}

/** @param {string} text @param {number} line @returns {any} */
function scalar(text, line) {
  const reader = { text, at: 0, line };
  const value = item(reader, '');
  if (reader.at < text.length) throw new YamlError(line, `unexpected text \`${text.slice(reader.at)}\``);
  return value;
}

/** @typedef {{ text: string, at: number, line: number }} Reader */

/** @param {Reader} reader */
function space(reader) {
  while (reader.text[reader.at] === ' ') reader.at += 1;
}

/** @param {Reader} reader @param {string} ends letters that end a plain value @returns {any} */
function item(reader, ends) {
  space(reader);
  const letter = reader.text[reader.at];
  if (letter === '[' || letter === '{') return flow(reader, letter);
  if (letter === '"' || letter === "'") return string(reader, letter);
  if (letter && '&*!|>%@`'.includes(letter)) throw new YamlError(reader.line, `a value that begins with ${letter} needs quotes here`);
  const from = reader.at;
  while (reader.at < reader.text.length && !ends.includes(reader.text[reader.at])) reader.at += 1;
  return plain(reader.text.slice(from, reader.at).trim());
}

/** @param {Reader} reader @param {string} open */
function flow(reader, open) {
  const close = open === '[' ? ']' : '}';
  /** @type {any[]} */
  const items = [];
  /** @type {Record<string, unknown>} */
  const mapping = {};
  reader.at += 1;
  for (;;) {
    space(reader);
    if (reader.at >= reader.text.length) throw new YamlError(reader.line, `${close} is missing at the end of the line`);
    if (reader.text[reader.at] === close) break;
    if (open === '[') items.push(item(reader, ',]'));
    else {
      const key = String(item(reader, ':,}'));
      space(reader);
      if (reader.text[reader.at] !== ':') throw new YamlError(reader.line, `\`${key}\` needs a colon and a value`);
      reader.at += 1;
      mapping[key] = item(reader, ',}');
    }
    space(reader);
    if (reader.text[reader.at] === ',') reader.at += 1;
  }
  reader.at += 1;
  space(reader);
  return open === '[' ? items : mapping;
}

/** @param {Reader} reader @param {string} quote */
function string(reader, quote) {
  const pattern = quote === '"' ? /"(?:[^"\\]|\\.)*"/y : /'(?:[^']|'')*'/y;
  pattern.lastIndex = reader.at;
  const found = pattern.exec(reader.text)?.[0];
  if (!found) throw new YamlError(reader.line, `the closing ${quote} is missing`);
  reader.at += found.length;
  space(reader);
  if (quote === "'") return found.slice(1, -1).replaceAll("''", "'");
  try {
    return JSON.parse(found);
  } catch {
    throw new YamlError(reader.line, `${found} has an unknown escape`);
  }
}

/** @param {string} text */
function plain(text) {
  if (text === '' || text === 'null' || text === '~') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}

/** @param {any} value a mapping @param {string} [indent] @returns {string} */
export function write(value, indent = '') {
  return Object.entries(value).map(([key, inner]) => {
    const start = `${indent}${bare(key)}:`;
    const nested = inner && typeof inner === 'object' && !Array.isArray(inner);
    if (!nested) return `${start} ${one(inner)}\n`;
    return Object.keys(inner).length === 0 ? `${start} {}\n` : `${start}\n${write(inner, `${indent}  `)}`;
  }).join('');
}

/** @param {any} value @returns {string} */
const one = (value) => (Array.isArray(value) ? `[${value.map(one).join(', ')}]` : typeof value === 'string' ? bare(value) : JSON.stringify(value));

/** Quotes a string that would be read as something else. @param {string} text */
const bare = (text) => (/^[\w/.][\w/.:-]*$/.test(text) && !text.endsWith(':') && typeof plain(text) === 'string' ? text : JSON.stringify(text));
