/** Composite events as they come, a sample where they are many; each opens why it came. */

import { el, renew, reveal, say, table } from "./dom.js";
import { data, number, seconds, time } from "./format.js";
import { ask } from "./requests.js";
import { timeline } from "./timeline.js";

const SHOWN = 50;

export class Events {
  constructor(page) {
    this.page = page;
    this.rows = [];
    this.chosen = null;
    this.history = [];
    this.type = el("select", { id: "event-type", onchange: () => this.listen() }, el("option", { value: "" }, "all composite events"));
    this.whole = el("input", { type: "checkbox", id: "whole", onchange: () => this.listen() });
    this.paused = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.pause() }, "Pause");
    this.note = el("p", { class: "note" });
    this.list = el("div", { class: "list" });
    this.detail = el("section", { class: "box", "aria-label": "Event" }, el("p", { class: "quiet" }, "Choose an event to see what caused it."));
    this.why = el("div");
    this.element = el("section", { "aria-labelledby": "events-title" }, el("h1", { id: "events-title" }, "Events"),
      el("div", { class: "row" }, el("label", { for: "event-type" }, "Type"), this.type,
        el("label", {}, this.whole, "keep primitive events, too (for causes and the playground)"), this.paused),
      this.note, el("div", { class: "split" }, this.list, this.detail));
  }

  get query() {
    const types = this.type.value ? `&types=${encodeURIComponent(this.type.value)}` : "";
    return `?events=1${types}${this.whole.checked ? "&whole=1" : ""}`;
  }

  listen() {
    this.rows = [];
    this.show();
    this.page.listen(this.query);
  }

  pause() {
    this.isPaused = !this.isPaused;
    this.paused.setAttribute("aria-pressed", String(this.isPaused));
    this.paused.textContent = this.isPaused ? "Go on" : "Pause";
  }

  take(kind, found) {
    if (kind !== "events") return;
    this.made = found.made ?? this.made ?? [];
    this.offer(found.kept);
    const { kept } = found;
    const sampled = found.count > found.events.length ? ` Of ${number(found.count)} in the last second ${found.events.length} are shown.` : "";
    const dropped = kept.dropped ? ` ${number(kept.dropped)} were dropped on the way here.` : "";
    const types = kept.types_left_out ? ` Of ${number(this.made.length)} types those are taken that come, ${number(this.made.length - kept.types_left_out)} at a time; to wait for one, choose it.` : "";
    this.note.textContent = kept.problem || `${number(kept.events)} events of the last ${seconds(kept.seconds)} are kept.${sampled}${dropped}${types}`;
    if (this.isPaused || !found.events.length) return;
    const newest = found.events.sort((one, other) => other.time - one.time);
    this.rows = [...newest, ...this.rows].slice(0, SHOWN);
    this.show();
  }

  offer(kept) {
    const others = this.whole.checked ? Object.keys(kept?.types ?? {}) : [];
    const names = [...new Set([...this.made, ...others])].sort();
    if (names.join() === this.offered) return;
    this.offered = names.join();
    const { value } = this.type;
    this.type.replaceChildren(el("option", { value: "" }, "all composite events"), ...names.map((name) => el("option", { value: name }, name)));
    this.type.value = names.includes(value) ? value : "";
  }

  show() {
    renew(this.list, this.rows.length ? table("Newest events", [
      ["time", (row) => el("button", { class: "plain", type: "button", "data-key": row.name, onclick: () => this.choose(row) }, el("span", { class: "time", title: time(row.time) }, time(row.time).slice(11)))],
      ["type", (row) => el("span", { class: "cut", title: row.type }, row.type)], ["attributes", (row) => el("span", { class: "attributes" }, data(row.data))],
    ], this.rows, (row) => ({ "data-key": `row ${row.name}`, "aria-selected": row.name === this.chosen?.name ? "true" : null }))
      : el("p", { class: "quiet" }, "None has come since this was opened."));
  }

  async choose(event) {
    this.chosen = event;
    this.why.replaceChildren();
    this.show();
    reveal(this.detail);
    try {
      const found = await ask("history", { name: event.name });
      this.history = found.events;
      const [first] = found.events;
      if (first.time === null) found.events[0] = event;
    } catch (error) {
      this.history = [event];
      this.why.replaceChildren(el("p", { class: "bad" }, error.message));
    }
    this.describe();
    say(`${event.type}: ${this.history.length - 1} events before it`);
  }

  describe() {
    const event = this.chosen;
    const unknown = this.history.filter((one) => one.time === null).length;
    const width = Math.max(300, this.detail.clientWidth - 34);
    const ask = event.cause.length ? el("button", { type: "button", onclick: () => this.explain(event) }, "Why did it fire?") : null;
    renew(this.detail, el("h2", {}, `${event.type} at ${time(event.time)}`), el("p", {}, data(event.data)),
      timeline(this.history, width, { composite: (one) => one.cause.length > 0, chosen: event.name, choose: () => {} }),
      unknown ? el("p", { class: "note" }, `${unknown} of its causes are not kept here${this.whole.checked ? " any more" : "; have primitive events kept, too"}.`) : null,
      this.history.length > 1 ? table("Causes", [
        ["event", (row) => row.name], ["type", (row) => row.type ?? "not kept"],
        ["before", (row) => (row.time === null ? "–" : seconds((event.time - row.time) / 1e6)), true], ["attributes", (row) => el("span", { class: "attributes" }, data(row.data))],
      ], this.history.slice(1)) : null, ask, this.why);
  }

  async explain(event) {
    this.why.replaceChildren(el("p", { class: "quiet" }, "…"));
    try {
      const found = await ask("why", { name: event.name });
      this.why.replaceChildren(el("p", { class: "note" }, "Over the events that are kept here; what is older is not seen."),
        el("pre", { class: "why", tabindex: "0" }, found.text));
      say("Explained");
    } catch (error) {
      this.why.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
    }
  }
}
