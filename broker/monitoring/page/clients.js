/** Sources with their promises, sinks with their queues; those that need a look come first. */

import { el, renew, table } from "./dom.js";
import { counted, number, seconds, time } from "./format.js";

export class Clients {
  constructor(page) {
    this.page = page;
    this.body = el("div");
    this.element = el("section", { "aria-labelledby": "clients-title" },
      el("h1", { id: "clients-title" }, "Clients"), this.body);
  }

  take(kind, state) {
    if (kind !== "state") return;
    const { sinks, sources } = state.lists;
    renew(this.body,
      el("p", { class: "note" }, `Of ${known(state)}. Full queues come first; a queue that is full makes its sources wait, or drops events.`),
      el("div", { class: "part" }, table(`Sinks: ${number(state.counts.sinks)}`, [
        ["name", (row) => row.name || el("span", { class: "quiet" }, "no name")], ["broker", (row) => row.broker],
        ["full", (row) => el("span", { class: fullness(row["full_%"]) }, `${row["full_%"]} %`), true],
        ["queued", (row) => `${number(row.queued)} of ${number(row.limit)}`, true],
        ["events/s", (row) => rate(state, row["events/s"]), true],
        ["dropped/s", (row) => el("span", { class: row["dropped/s"] ? "bad" : null }, rate(state, row["dropped/s"])), true],
        ["dropped", (row) => number(row.dropped), true], ["when full", (row) => row.when_full],
        ["asks for", (row) => asked(row.subscriptions)],
      ], sinks), more(state, "sinks")),
      el("div", { class: "part" }, table(`Sources: ${number(state.counts.sources)}`, [
        ["name", (row) => row.name], ["broker", (row) => row.broker],
        ["standing", (row) => el("span", { class: row.standing === "live" ? null : "warn" }, row.standing)],
        ["events/s", (row) => rate(state, row["events/s"]), true],
        ["promise", (row) => el("span", { class: "time" }, time(row.promise))],
        ["behind", (row) => (row.promise === null ? "–" : seconds((state.clock - row.promise) / 1e6)), true],
        ["late", (row) => number(row.late), true], ["repeats", (row) => number(row.duplicates), true],
        ["refused", (row) => number(row.rejected), true],
        ["", (row) => row.withheld ? el("span", { class: "warn" }, `waits: ${row.withheld}`) : ""],
        ["types", (row) => row.types.join(", ")],
      ], sources), more(state, "sources")));
  }
}

function known(state) {
  const names = state.brokers.filter((one) => one.known).map((one) => one.name);
  return names.length === state.brokers.length ? "all brokers" : `${names.join(", ")}; of others it is not known here`;
}

function rate(state, value) {
  return number(state.rated ? value : null);
}

function fullness(percent) {
  return percent >= 80 ? "bad" : percent >= 40 ? "warn" : null;
}

function asked(subscriptions) {
  const first = subscriptions.slice(0, 3).map((one) => one.filter + (one.paused ? ` (paused: ${one.paused})` : one.waits ? " (waits)" : ""));
  const left = subscriptions.length - first.length;
  return first.join(", ") + (left > 0 ? ` and ${number(left)} more` : "");
}

function more(state, kind) {
  const left = state.counts[kind] - state.lists[kind].length;
  return left > 0 ? el("p", { class: "note" }, `${counted(left, "more row")} not shown.`) : null;
}
