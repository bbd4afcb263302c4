/** Rules: where each runs, how far it is, who holds it up, its text; and changes of them. */

import { el, renew, reveal, say } from "./dom.js";
import { Editor } from "./editor.js";
import { bytes, number, seconds, time } from "./format.js";
import { highlighted } from "./highlight.js";
import { List, wantedOf } from "./list.js";
import { ask } from "./requests.js";
import { sparkline } from "./sparkline.js";

export class Rules {
  constructor(page) {
    this.page = page;
    this.chosen = null;
    this.rule = null;
    this.texts = new Map();
    const rate = (value) => (value === null ? "–" : number(page.state.rated ? value : null));
    this.list = new List("Rules", [
      ["name", (row) => el("button", { class: "plain", type: "button", title: row.name, onclick: () => this.choose(row.name) }, row.name), false, "name"],
      ["state", (row) => el("span", { class: tone(row.state) }, row.state), false, "state"],
      ["found/s", (row) => rate(row["events/s"]), true, "events/s"],
      ["last minutes", (row) => sparkline(row.line) ?? "", false, "lately/s"],
      ["at", (row) => row.place ?? "–", false, "place"],
      ["cost", (row) => `${rate(row["cost_%"])} %`, true, "cost_%"],
      ["behind", (row) => seconds(row.behind_s), true, "behind_s"],
      ["memory", (row) => bytes(row.memory), true, "memory"],
      ["held up by", (row) => row.held_up_by.join(", ")],
    ], {
      asked: () => page.listen(this.query), empty: "No rule is deployed.",
      attributes: (row) => ({ "data-key": `row ${row.name}`, "aria-selected": row.name === this.chosen ? "true" : null }),
    });
    this.detail = el("section", { class: "box", "aria-label": "Rule" }, el("p", { class: "quiet" }, "Choose a rule to see its text."));
    this.element = el("section", { "aria-labelledby": "rules-title" }, el("h1", { id: "rules-title" }, "Rules"),
      el("div", { class: "row" }, el("button", { class: "main", type: "button", onclick: () => this.edit("", false) }, "Deploy rules…")),
      el("div", { class: "split" }, this.list.element, this.detail));
  }

  get query() { return `?${wantedOf({ rules: { ...this.list.wanted, chosen: this.chosen } })}`; }

  take(kind, state) {
    if (kind !== "state" || !state.lists.rules) return;
    this.window = state.lists.rules;
    this.list.show(this.window);
    if (this.chosen) this.describe();
  }

  async choose(name) {
    this.chosen = name;
    this.rule = this.window.rows.find((one) => one.name === name) ?? null;
    this.list.show(this.window);
    this.describe();
    this.page.listen(this.query);
    reveal(this.detail);
    try {
      const found = await ask("rule", { name });
      this.texts.set(name, found.text);
    } catch (error) {
      this.texts.set(name, null);
      this.failed(error);
    }
    if (this.chosen === name) {
      this.describe();
      reveal(this.detail);
    }
    say(`Rule ${name}`);
  }

  describe() {
    const name = this.chosen;
    if (this.window.wanted === name) this.rule = this.window.chosen;
    const rule = this.rule;
    if (!rule) {
      this.chosen = null;
      this.page.listen(this.query);
      return renew(this.detail, el("p", { class: "quiet" }, `Rule ${name} is not there any more.`));
    }
    const text = this.texts.get(name);
    const facts = [
      ["State", rule.says], ["Makes", rule.type], ["Found", rule.events === null ? null : number(rule.events)],
      ["Evaluated at", rule.place ?? "no broker"],
      ["Watermark", rule.mark === null ? "none" : `${time(rule.mark)} (${seconds(rule.behind_s)} behind)`],
      ["Since", rule.since === null ? `the beginning, version ${rule.version}` : `${time(rule.since)}, version ${rule.version}`],
      ["Memory", rule.memory === null ? null : bytes(rule.memory)], ["Owner", rule.owner],
      ["Evaluated on", rule.evaluated_on ? `${rule.evaluated_on}${rule.evaluated_why ? `: ${rule.evaluated_why}` : ""}` : null],
      ["Without", rule.without.join(", ") || null],
    ];
    renew(this.detail, el("h2", {}, `Rule ${name}`), el("div", {},
      text ? el("pre", { class: "why" }, highlighted(text)) : el("p", { class: "quiet" }, text === null ? "It is not there any more." : "…")),
      el("div", { class: "row" },
        el("button", { type: "button", "data-key": "replace", disabled: !text, onclick: () => this.edit(text, true) }, "Replace…"),
        el("button", { type: "button", "data-key": "try", disabled: !text, onclick: () => { this.page.draft = text; this.page.go("playground"); } }, "Try in the playground"),
        el("button", { type: "button", "data-key": "remove", class: "danger", onclick: () => this.remove(name) }, "Remove…")),
      el("table", { class: "facts" }, el("tbody", {}, facts.filter(([, value]) => value).map(([key, value]) =>
        el("tr", { "data-key": key }, el("th", { scope: "row" }, key), el("td", {}, value))))),
      rule.held_by.length ? el("h3", {}, "Who holds the watermark") : null,
      rule.held_by.length ? el("ul", {}, rule.held_by.map((one) => el("li", {},
        `${one.types.join(", ")} of ${one.source ?? (one.broker ? `broker ${one.broker}` : "clients that may come back")} (${one.standing}), promise ${time(one.promise)}`))) : null);
  }

  edit(text, replace) {
    const wrong = el("p", { class: "bad", role: "alert" });
    const go = el("button", { class: "main", type: "submit" }, replace ? "Replace" : "Deploy");
    const swap = el("input", { type: "checkbox", checked: replace });
    const editor = new Editor("Rules", () => { go.disabled = !editor.isGood; });
    const dialog = el("dialog", { "aria-labelledby": "edit-title", onclose: () => dialog.remove() });
    dialog.append(el("form", { onsubmit: async (event) => {
      event.preventDefault();
      try {
        await ask("deploy", { text: editor.text, replace: swap.checked });
        say("Deployed");
        this.texts.clear();
        dialog.close();
        if (this.chosen) this.choose(this.chosen);
      } catch (error) { wrong.textContent = error.message; }
    } }, el("h2", { id: "edit-title" }, replace ? "Replace rules" : "Deploy rules"), editor.element,
    el("div", { class: "row" }, el("label", {}, swap, "replace rules of the same names")), wrong,
    el("div", { class: "row" }, go, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
    document.body.append(dialog);
    editor.text = text;
    dialog.showModal();
    editor.area.focus();
  }

  remove(name) {
    const wrong = el("p", { class: "bad", role: "alert" });
    const dialog = el("dialog", { "aria-labelledby": "remove-title", onclose: () => dialog.remove() });
    dialog.append(el("h2", { id: "remove-title" }, `Remove rule ${name}?`),
      el("p", {}, "What was published before is still evaluated; later events are not."), wrong,
      el("div", { class: "row" }, el("button", { class: "danger", type: "button", onclick: async () => {
        try {
          await ask("remove", { name });
          say(`Rule ${name} is removed`);
          dialog.close();
        } catch (error) { wrong.textContent = error.message; }
      } }, "Remove"), el("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Cancel")));
    document.body.append(dialog);
    dialog.showModal();
  }

  failed(error) { say(error.message); }
}

function tone(state) {
  return { stalled: "bad", waiting: "warn", running: "good" }[state] ?? "quiet";
}
