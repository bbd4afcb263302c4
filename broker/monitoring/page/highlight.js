/** TESLA in colours: a text as pieces, each with its class; what is wrong is underlined. */

import { el } from "./dom.js";

/** Words that the language reserves, as `rules.syntax.words` has them, and those of selections. */
export const RESERVED = ["define", "from", "where", "consuming", "and", "or", "not", "within", "between", "true", "false"];
const SOFT = ["rule", "event", "each", "first", "last", "as"];
const WORDS = new Set([...RESERVED, ...SOFT]);
const TOKEN = /(#[^\n]*|\/\/[^\n]*)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|(\$[\p{L}_][\p{L}\p{N}_]*)|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_]*)/gu;

/** The pieces of a text: [start, end, class]; what has none is left out. */
export function pieces(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const [word, comment, string, parameter, digits, name] = match;
    const kind = comment ? "comment" : string ? "string" : parameter ? "type" : digits ? "number-word"
      : WORDS.has(name.toLowerCase()) ? "keyword" : /^\p{Lu}/u.test(name) ? "type" : null;
    if (kind) found.push([match.index, match.index + word.length, kind]);
  }
  return found;
}

/** Nodes of a text; `problems` have `start` and `end`. */
export function highlighted(text, problems = []) {
  const coloured = pieces(text);
  const cuts = new Set([0, text.length]);
  for (const [start, end] of coloured) cuts.add(start).add(end);
  const wrong = problems.filter((one) => one.line).map((one) => [one.start, Math.max(one.end, one.start + 1)]);
  for (const [start, end] of wrong) cuts.add(Math.min(start, text.length)).add(Math.min(end, text.length));
  const places = [...cuts].sort((one, other) => one - other);
  const nodes = [];
  let next = 0;
  for (let i = 0; i + 1 < places.length; i++) {
    const [start, end] = [places[i], places[i + 1]];
    while (next < coloured.length && coloured[next][1] <= start) next++;
    const kind = next < coloured.length && coloured[next][0] <= start ? coloured[next][2] : null;
    const bad = wrong.some(([from, to]) => from <= start && end <= to);
    const piece = text.slice(start, end);
    nodes.push(kind || bad ? el("span", { class: [kind, bad && "wrong"].filter(Boolean).join(" ") }, piece) : piece);
  }
  return nodes;
}
