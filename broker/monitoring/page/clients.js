/** Sources with their promises, sinks with their queues; those that need a look come first. */

import { el, renew } from "./dom.js";
import { number, seconds, time } from "./format.js";
import { List, wantedOf } from "./list.js";

export class Clients {
  constructor(page) {
    this.page = page;
    const asked = () => page.listen(this.query);
    const rate = (row, of) => number(page.state.rated ? row[of] : null);
    const attributes = (row) => ({ "data-key": `row ${row.broker} ${row.name}` });
    this.sinks = new List("Sinks", [
      ["name", (row) => row.name || el("span", { class: "quiet" }, "no name"), false, "name"], ["broker", (row) => row.broker, false, "broker"],
      ["full", (row) => el("span", { class: fullness(row["full_%"]) }, `${row["full_%"]} %`), true, "full_%"],
      ["queued", (row) => `${number(row.queued)} of ${number(row.limit)}`, true, "queued"],
      ["events/s", (row) => rate(row, "events/s"), true, "events/s"],
      ["dropped/s", (row) => el("span", { class: row["dropped/s"] ? "bad" : null }, rate(row, "dropped/s")), true, "dropped/s"],
      ["dropped", (row) => number(row.dropped), true, "dropped"], ["when full", (row) => row.when_full, false, "when_full"],
      ["asks for", (row) => requested(row.subscriptions)],
    ], { asked, attributes });
    this.sources = new List("Sources", [
      ["name", (row) => row.name, false, "name"], ["broker", (row) => row.broker, false, "broker"],
      ["standing", (row) => el("span", { class: row.standing === "live" ? null : "warn" }, row.standing), false, "standing"],
      ["events/s", (row) => rate(row, "events/s"), true, "events/s"],
      ["promise", (row) => el("span", { class: "time" }, time(row.promise)), false, "promise"],
      ["behind", (row) => (row.promise === null ? "–" : seconds((page.state.clock - row.promise) / 1e6)), true, "promise"],
      ["late", (row) => number(row.late), true, "late"], ["repeats", (row) => number(row.duplicates), true, "duplicates"],
      ["refused", (row) => number(row.rejected), true, "rejected"],
      ["", (row) => row.withheld ? el("span", { class: "warn" }, `waits: ${row.withheld}`) : ""],
      ["types", (row) => row.types.join(", ")],
    ], { asked, attributes });
    this.note = el("div");
    this.element = el("section", { "aria-labelledby": "clients-title" },
      el("h1", { id: "clients-title" }, "Clients"), this.note,
      el("div", { class: "part" }, this.sinks.element), el("div", { class: "part" }, this.sources.element));
  }

  get query() { return `?${wantedOf({ sinks: this.sinks.wanted, sources: this.sources.wanted })}`; }

  take(kind, state) {
    if (kind !== "state") return;
    renew(this.note, el("p", { class: "note" }, `Of ${known(state)}. Full queues come first; a queue that is full makes its sources wait, or drops events.`));
    this.sinks.show(state.lists.sinks);
    this.sources.show(state.lists.sources);
  }
}

function known(state) {
  const names = state.brokers.filter((one) => one.known).map((one) => one.name);
  return names.length === state.brokers.length ? "all brokers" : `${names.join(", ")}; of others it is not known here`;
}

function fullness(percent) {
  return percent >= 80 ? "bad" : percent >= 40 ? "warn" : null;
}

function requested(subscriptions) {
  const first = subscriptions.slice(0, 3).map((one) => one.filter + (one.paused ? ` (paused: ${one.paused})` : one.waits ? " (waits)" : ""));
  const left = subscriptions.length - first.length;
  return first.join(", ") + (left > 0 ? ` and ${number(left)} more` : "");
}
