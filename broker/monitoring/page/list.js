/**
 * Lists that are searched, sorted and paged by the process that serves the page, which sends the
 * rows of one page at a time.
 */

import { el, renew, table } from "./dom.js";
import { number } from "./format.js";

const TYPING_MS = 250, TOOLS_FROM = 8;
let lists = 0;

export class List {
  /**
   * `columns` are those of `table`, each with the name that it is sorted by, if it can be, in the
   * fourth place. `asked()` is called when other rows are wanted: see `wanted`.
   */
  constructor(title, columns, { asked, attributes = (row) => ({ "data-key": `row ${row.name}` }), empty = "There is none." }) {
    Object.assign(this, { title, columns, asked, attributes, empty });
    this.wanted = { search: "", sort: "", page: 0 };
    const id = `list-${++lists}`;
    this.search = el("input", { type: "search", id: `${id}-search`, size: "16", placeholder: "search", "aria-label": `Search ${title}`, oninput: () => this.typed() });
    const sorts = columns.filter(([, , , by]) => by).map(([name, , , by]) => el("option", { value: by }, `by ${name}`));
    this.sort = el("select", { "aria-label": `Sort ${title}`, class: "narrow", onchange: () => this.ask({ sort: this.sort.value, page: 0 }) }, el("option", { value: "" }, "as they come"), sorts);
    this.before = el("button", { type: "button", "aria-label": `Earlier ${title}`, onclick: () => this.ask({ page: this.wanted.page - 1 }) }, "‹");
    this.after = el("button", { type: "button", "aria-label": `Later ${title}`, onclick: () => this.ask({ page: this.wanted.page + 1 }) }, "›");
    this.place = el("span", { class: "note" });
    this.tools = el("div", { class: "row tools", hidden: true }, this.search, this.sort, el("span", { class: "pager" }, this.before, this.place, this.after));
    this.body = el("div");
    this.element = el("div", { class: "list" }, this.tools, this.body);
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask({ search: this.search.value.trim().slice(0, 200), page: 0 }), TYPING_MS);
  }

  ask(change) {
    this.wanted = { ...this.wanted, ...change };
    this.sort.value = this.wanted.sort.replace(/^-/, "");
    this.asked();
  }

  /** A click sorts by a column, another one the other way round, a third one as they come. */
  heading(title, by, isNumber) {
    const { sort } = this.wanted;
    const [first, second] = isNumber ? ["descending", "ascending"] : ["ascending", "descending"];
    const next = sort === by ? `-${by}` : sort === `-${by}` ? "" : by;
    return {
      sorted: sort === by ? first : sort === `-${by}` ? second : null,
      button: el("button", { class: "heading", type: "button", "data-key": `by ${by}`, onclick: () => this.ask({ sort: next, page: 0 }) }, title),
    };
  }

  show(window) {
    if (!window) return;
    const { rows, count, found, first, page, pages } = window;
    this.wanted.page = page;
    this.tools.hidden = count < TOOLS_FROM && !this.wanted.search;
    this.before.disabled = page === 0;
    this.after.disabled = page >= pages - 1;
    this.place.textContent = pages > 1 ? `${number(first)}–${number(first + rows.length - 1)} of ${number(found)}` : this.wanted.search ? `${number(found)} of ${number(count)}` : "";
    this.before.hidden = this.after.hidden = pages < 2;
    const columns = this.columns.map(([title, show, isNumber, by]) => [title, show, isNumber, by ? this.heading(title, by, isNumber) : null]);
    const seen = new Map();
    const attributes = (row) => {  // clients may share a name
      const found = this.attributes(row), key = found["data-key"], times = seen.get(key) ?? 0;
      seen.set(key, times + 1);
      return times ? { ...found, "data-key": `${key} ${times}` } : found;
    };
    renew(this.body, rows.length ? table(`${this.title}: ${number(count)}`, columns, rows, attributes)
      : el("p", { class: "quiet" }, count ? `None of ${number(count)} has “${this.wanted.search}”.` : this.empty));
  }
}

/** What a stream is asked for, of lists by their names. */
export function wantedOf(lists) {
  return `lists=${encodeURIComponent(JSON.stringify(lists))}`;
}
