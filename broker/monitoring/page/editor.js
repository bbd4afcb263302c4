/** An editor of rules: what is typed is coloured, and checked by the compiler a moment later. */

import { el } from "./dom.js";
import { highlighted } from "./highlight.js";
import { ask } from "./requests.js";

const PAUSE_MS = 300;
let editors = 0;

export class Editor {
  /** `changed` is called after each check; `schemas()` gives types that are known besides. */
  constructor(label, changed = () => {}, schemas = () => []) {
    this.changed = changed;
    this.schemas = schemas;
    this.problems = [];
    this.rules = [];
    const id = `editor-${++editors}`;
    this.colours = el("pre", { "aria-hidden": "true" });
    this.area = el("textarea", { id, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
      "aria-describedby": `${id}-problems`, oninput: () => this.typed(), onscroll: () => this.scrolled() });
    this.list = el("ul", { class: "problems", id: `${id}-problems`, "aria-live": "polite" });
    this.element = el("div", {}, el("label", { for: id }, label),
      el("div", { class: "editor" }, this.colours, this.area), this.list);
  }

  get text() { return this.area.value; }

  set text(text) { this.area.value = text; this.typed(); }

  /** Whether it can be run: nothing is wrong, and there is a rule. */
  get isGood() { return !this.problems.length && this.rules.length > 0; }

  typed() {
    this.problems = [];
    this.rules = [];
    this.paint();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE_MS);
    this.changed();
  }

  async check() {
    const text = this.text;
    if (!text.trim()) return this.tell([]);
    let found;
    try {
      found = await ask("check", { text, schemas: this.schemas() });
    } catch (error) {
      found = { problems: [{ message: error.message, line: null }], rules: [] };
    }
    if (text !== this.text) return;  // it is checked again soon
    this.problems = found.problems;
    this.rules = found.rules;
    this.paint();
    this.tell(found.problems);
    this.changed();
  }

  tell(problems) {
    this.area.setAttribute("aria-invalid", String(problems.length > 0));
    this.list.replaceChildren(...problems.map((one) => el("li", {},
      one.line ? el("button", { class: "plain", type: "button", onclick: () => this.select(one) }, `${one.line}:${one.column}`) : "",
      " ", el("span", { class: "bad" }, one.message), one.hint ? el("span", { class: "quiet" }, ` – ${one.hint}`) : "")));
    if (!problems.length && this.rules.length) {
      this.list.replaceChildren(el("li", { class: "good" }, `ok: ${this.rules.join(", ")}`));
    }
  }

  select(problem) {
    this.area.focus();
    this.area.setSelectionRange(problem.start, problem.end);
  }

  paint() {
    this.colours.replaceChildren(...highlighted(this.text, this.problems), "\n");
    this.scrolled();
  }

  scrolled() {
    this.colours.scrollTop = this.area.scrollTop;
    this.colours.scrollLeft = this.area.scrollLeft;
  }
}
