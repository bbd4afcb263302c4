// Batches of events as columns: docs/protocol.md, section 3.

import { joined } from "./transports.js";

const WORD = 8;
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

// The names and kinds of a schema's attributes, presences of optional ones among them.
export function attributesOf(schema) {
  const attributes = [];
  for (let at = 1; at < schema.length; at += 2) attributes.push([schema[at], schema[at + 1]]);
  return attributes;
}

// The schema of `{ area: "string", value: "float?" }`: optional attributes have a presence behind.
export function schemaOf(type, attributes) {
  const declared = Object.entries(attributes);
  const schema = [type];
  for (const [name, kind] of declared) schema.push(name, kind.replace("?", ""));
  for (const [name, kind] of declared) if (kind.endsWith("?")) schema.push(`${name}?`, "bool");
  return schema;
}

// The values of an event in the order of its schema. TypeError for one that does not fit.
export function rowOf(schema, data) {
  const attributes = attributesOf(schema);
  const names = new Set(attributes.map(([name]) => name));
  for (const name of Object.keys(data)) {
    if (!names.has(name)) throw new TypeError(`${schema[0]} has no attribute ${name}`);
  }
  return attributes.map(([name, kind]) => {
    if (name.endsWith("?")) return data[name.slice(0, -1)] != null;
    const value = data[name];
    if (value == null && names.has(`${name}?`)) return NULLS[kind];
    if (!FITS[kind](value)) {
      throw new TypeError(`attribute ${name} of ${schema[0]}: expected ${kind}, found ${value}`);
    }
    return kind === "int" ? BigInt(value) : value;
  });
}

const NULLS = { int: 0n, float: 0, bool: false, string: "" };
const FITS = {
  int: (value) => Number.isSafeInteger(value) || (typeof value === "bigint" && isInt64(value)),
  float: (value) => typeof value === "number" && Number.isFinite(value),
  bool: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
};

function isInt64(value) {
  return BigInt.asIntN(64, value) === value;
}

// The two parts of a batch of rows `{ time, sequence, id, values }` of one source.
export function write(schema, source, rows) {
  const attributes = attributesOf(schema);
  const places = (kinds) => attributes.flatMap(([, kind], at) => (kinds.includes(kind) ? [at] : []));
  const ids = rows[0].id === null ? null : dictionaryOf(rows.map((row) => row.id));
  const strings = places(["string"]).map((at) => dictionaryOf(rows.map((row) => row.values[at])));
  const parts = [
    int64s(rows.map((row) => row.time)),
    int64s(rows.map((row) => BigInt(row.sequence))),
  ];
  for (const at of places(["int", "float"])) {
    const values = rows.map((row) => row.values[at]);
    parts.push(attributes[at][1] === "int" ? int64s(values) : bytesOf(Float64Array.from(values)));
  }
  for (const { words, codes } of ids === null ? strings : [ids, ...strings]) {
    if (words.length > 1) parts.push(bytesOf(Int32Array.from(codes)));
  }
  for (const at of places(["bool"])) {
    parts.push(Uint8Array.from(rows, (row) => Number(row.values[at])));
  }
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  parts.push(new Uint8Array((WORD - (size % WORD)) % WORD));
  const texts = strings.map(({ words }) => words);
  const words = ids === null ? null : ids.words;
  const head = [schema, rows.length, [source], words, false, texts, null];
  return [head, joined(parts)];
}

function int64s(values) {
  return bytesOf(BigInt64Array.from(values));
}

function bytesOf(array) {
  return new Uint8Array(array.buffer);
}

function dictionaryOf(values) {
  const places = new Map();
  const codes = values.map((value) => {
    if (!places.has(value)) places.set(value, places.size);
    return places.get(value);
  });
  return { words: [...places.keys()], codes };
}

// The columns of a message, read one after another.
export class Columns {
  constructor(frame) {
    this.bytes = Uint8Array.from(frame).buffer; // a copy, so that it begins at a whole word
    this.at = 0;
  }

  take(kind, count) {
    const array = new kind(this.bytes.slice(this.at, this.at + count * kind.BYTES_PER_ELEMENT));
    if (array.length !== count) throw new RangeError("the columns are shorter than they say");
    this.at += count * kind.BYTES_PER_ELEMENT;
    return array;
  }

  takeCodes(dictionary, count) {
    if (dictionary.length === 1) return Array(count).fill(dictionary[0]);
    return Array.from(this.take(Int32Array, count), (code) => dictionary[code]);
  }

  align() {
    this.at += (WORD - (this.at % WORD)) % WORD;
  }
}

// The events of a batch, whose columns come next.
export function read(batch, columns) {
  const [schema, count, sources, ids, digested, texts, causes] = batch;
  const attributes = attributesOf(schema);
  const times = columns.take(BigInt64Array, count);
  const sequences = columns.take(BigInt64Array, count);
  const digests = digested ? columns.take(BigUint64Array, 2 * count) : null;
  const data = new Map();
  for (const [name, kind] of attributes) {
    if (kind === "int") data.set(name, Array.from(columns.take(BigInt64Array, count), asNumber));
    if (kind === "float") data.set(name, columns.take(Float64Array, count));
  }
  const cause = causes && takeNumbers(columns, causes, count);
  const origins = columns.takeCodes(sources, count);
  const names = ids === null ? null : columns.takeCodes(ids, count);
  attributes
    .filter(([, kind]) => kind === "string")
    .forEach(([name], at) => data.set(name, columns.takeCodes(texts[at], count)));
  if (cause) takeTexts(columns, causes, cause);
  for (const [name, kind] of attributes) {
    if (kind === "bool") data.set(name, Array.from(columns.take(Uint8Array, count), Boolean));
  }
  if (cause) takeFlags(columns, causes, cause);
  columns.align();
  return Array.from(times, (time, row) => ({
    type: schema[0],
    time,
    source: origins[row],
    sequence: asNumber(sequences[row]),
    id: digests ? hexadecimal(digests, row) : names ? names[row] : String(sequences[row]),
    data: dataOf(attributes, data, row),
    ...(cause && { cause: causesOf(cause, row) }),
  }));
}

function dataOf(attributes, columns, row) {
  const data = {};
  for (const [name] of attributes) {
    if (name.endsWith("?")) {
      if (!columns.get(name)[row]) data[name.slice(0, -1)] = null;
    } else {
      data[name] = columns.get(name)[row];
    }
  }
  return data;
}

function takeNumbers(columns, [total, , , digested], count) {
  return {
    offsets: columns.take(BigInt64Array, count + 1),
    sequences: columns.take(BigInt64Array, total),
    digests: digested ? columns.take(BigUint64Array, 2 * total) : null,
  };
}

function takeTexts(columns, [total, sources, ids], cause) {
  cause.sources = columns.takeCodes(sources, total);
  cause.names = ids === null ? null : columns.takeCodes(ids, total);
}

function takeFlags(columns, [total], cause) {
  cause.byDigest = cause.digests && columns.take(Uint8Array, total);
  cause.byName = cause.names && columns.take(Uint8Array, total);
}

// The causes of an event, each as its source and id.
function causesOf(cause, row) {
  const causes = [];
  for (let at = Number(cause.offsets[row]); at < Number(cause.offsets[row + 1]); at += 1) {
    const name = cause.byName && cause.byName[at] ? cause.names[at] : String(cause.sequences[at]);
    const id = cause.byDigest && cause.byDigest[at] ? hexadecimal(cause.digests, at) : name;
    causes.push({ source: cause.sources[at], id });
  }
  return causes;
}

function hexadecimal(digests, row) {
  const half = (value) => value.toString(16).padStart(16, "0");
  return half(digests[2 * row]) + half(digests[2 * row + 1]);
}

function asNumber(value) {
  return value >= -MAX_SAFE && value <= MAX_SAFE ? Number(value) : value;
}
