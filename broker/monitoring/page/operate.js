/** What an operator does at a broker: one event, its clients, queues, users, and the log. */

import { el, renew, reveal, say, table } from "./dom.js";
import { bytes, data, number, seconds, time } from "./format.js";
import { List, wantedOf } from "./list.js";
import { ask } from "./requests.js";

const LOG_EVERY_MS = 3000;

export class Operate {
  constructor(page) {
    this.page = page;
    const asked = () => page.listen(this.query);
    this.types = new List("Event types", [
      ["name", (row) => el("button", { class: "plain", type: "button", title: row.schema, onclick: () => this.compose(row.name) }, row.name), false, "name"],
      ["events/s", (row) => number(row["events/s"]), true, "events/s"], ["events", (row) => number(row.events), true, "events"],
      ["sources", (row) => number(row.sources), true, "sources"],
    ], { asked, empty: "No type is known." });
    this.form = el("section", { class: "box", "aria-label": "One event" }, el("p", { class: "quiet" }, "Choose a type to publish an event of it."));
    this.clients = new List("Clients of this broker", [
      ["name", (row) => row.name || el("span", { class: "quiet" }, "no name"), false, "name"], ["user", (row) => row.user ?? "–", false, "user"],
      ["connected", (row) => seconds(row.connected_s), true, "connected_s"],
      ["", (row) => el("button", { type: "button", class: "danger", onclick: () => this.sendAway(row) }, "Send away…")],
    ], { asked, attributes: (row) => ({ "data-key": `client ${row.number}` }) });
    this.queues = new List("Durable queues of this broker", [
      ["name", (row) => el("button", { class: "plain", type: "button", onclick: () => this.look(row.name) }, row.name), false, "name"],
      ["user", (row) => row.user ?? "–", false, "user"], ["clients", (row) => number(row.clients), true, "clients"],
      ["waiting", (row) => number(row.queued), true, "queued"], ["size", (row) => bytes(row.bytes), true, "bytes"],
      ["dropped", (row) => number(row.dropped), true, "dropped"], ["asks for", (row) => row.filters.join(", ")],
    ], { asked, empty: "There is no durable queue here." });
    this.waiting = el("section", { class: "box", "aria-label": "Waiting events" }, el("p", { class: "quiet" }, "Choose a queue to see what waits in it."));
    this.users = el("div");
    this.log = el("pre", { class: "why log", tabindex: "0", "aria-label": "Last lines of the log" });
    this.problem = el("p", { class: "bad", role: "alert", hidden: true });
    this.element = el("section", { "aria-labelledby": "operate-title" }, el("h1", { id: "operate-title" }, "Operate"),
      el("div", { class: "split short" }, this.types.element, this.form),
      el("div", { class: "part short" }, this.clients.element),
      el("div", { class: "part split short" }, this.queues.element, this.waiting),
      el("h2", {}, "Users"), this.users, el("h2", {}, "Last lines of the log"), this.problem, this.log);
  }

  get query() {
    return `?${wantedOf({ types: this.types.wanted, clients: this.clients.wanted, durable: this.queues.wanted })}`;
  }

  shown() {
    this.readUsers();
    this.readAt = 0;
  }

  take(kind, state) {
    if (kind !== "state") return;
    this.types.show(state.lists.types);
    this.clients.show(state.lists.clients);
    this.queues.show(state.lists.durable);
    if (performance.now() >= (this.readAt ?? 0)) this.readLog();
  }

  // --- one event ---

  async compose(name) {
    let found;
    try {
      found = await ask("type", { name });
    } catch (error) {
      return renew(this.form, el("p", { class: "bad" }, error.message));
    }
    const fields = found.attributes.map(([attribute, kind, optional], place) => {
      const id = `attribute-${place}`;
      const input = kind === "bool" ? el("input", { type: "checkbox", id })
        : el("input", { type: kind === "string" ? "text" : "number", step: kind === "int" ? "1" : "any", id, required: kind !== "string" && !optional });
      return { attribute, kind, optional, input, row: el("div", { class: "row" }, el("label", { for: id }, `${attribute}: ${kind}${optional ? "?" : ""}`), input) };
    });
    const told = el("p", { role: "status" });
    this.form.replaceChildren(el("form", { onsubmit: (event) => { event.preventDefault(); this.publish(name, fields, told); } },
      el("h2", {}, `Publish ${name}`), fields.map((one) => one.row),
      el("div", { class: "row" }, el("button", { class: "main", type: "submit" }, "Publish now")), told));
    reveal(this.form);
    (fields[0]?.input ?? this.form.querySelector("button")).focus({ preventScroll: true });
  }

  async publish(name, fields, told) {
    told.replaceChildren("…");
    const values = Object.fromEntries(fields.map(({ attribute, kind, optional, input }) => [attribute, valueOf(input, kind, optional)]));
    try {
      const found = await ask("publish", { type: name, data: values });
      told.replaceChildren(`Published at ${new Date().toISOString().slice(11, 19)} by ${found.source}: ${data(values)}`);
    } catch (error) {
      told.replaceChildren(el("span", { class: "bad" }, error.message));
    }
  }

  // --- clients, queues, users, the log ---

  sendAway(client) {
    const wrong = el("p", { class: "bad", role: "alert" });
    const dialog = el("dialog", { "aria-labelledby": "away-title", onclose: () => dialog.remove() });
    const name = client.name || "the client without a name";
    dialog.append(el("h2", { id: "away-title" }, `Send ${name} away?`),
      el("p", {}, "It is told not to come back, and does not by itself. Its program may connect again."), wrong,
      el("div", { class: "row" }, el("button", { class: "danger", type: "button", onclick: async () => {
        try {
          await ask("send-away", { number: client.number });
          say(`${name} is sent away`);
          dialog.close();
        } catch (error) { wrong.textContent = error.message; }
      } }, "Send away"), el("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Cancel")));
    document.body.append(dialog);
    dialog.showModal();
  }

  async look(name) {
    try {
      const { events, hidden, queued } = await ask("waiting", { name });
      renew(this.waiting, el("h2", {}, `Waiting for ${name}`),
        el("p", { class: "note" }, `${number(queued)} events wait; the first ${number(events.length)} are shown.${hidden ? ` ${number(hidden)} are of types that you may not read.` : ""}`),
        events.length ? table("Waiting events", [
          ["number", (row) => number(row.number)], ["time", (row) => el("span", { class: "time" }, time(row.time))],
          ["type", (row) => el("span", { class: "cut", title: row.type }, row.type)], ["attributes", (row) => el("span", { class: "attributes" }, data(row.data))],
        ], events, (row) => ({ "data-key": `row ${row.number}` })) : null);
      say(`${events.length} events of ${name}`);
    } catch (error) {
      renew(this.waiting, el("p", { class: "bad" }, error.message));
    }
    reveal(this.waiting);
  }

  async readUsers() {
    try {
      const { users } = await ask("users");
      renew(this.users, users.length ? table("Users", [
        ["name", (row) => row.name], ["connections", (row) => number(row.connected), true],
        ["may", (row) => el("span", { class: "attributes" }, row.may === null ? "everything" : row.may.join("; ") || "nothing")],
        ["limits", (row) => Object.entries(row.limits).map(([limit, most]) => `${limit} ${number(most)}`).join(", ") || "–"],
        ["by", (row) => row.tables.join(", ") || "–"],
      ], users, (row) => ({ "data-key": `row ${row.name}` })) : el("p", { class: "quiet" }, "The broker has no keys: whoever reaches it may do all."));
    } catch (error) {
      renew(this.users, el("p", { class: "bad" }, error.message));
    }
  }

  async readLog() {
    this.readAt = performance.now() + LOG_EVERY_MS;
    try {
      const { lines } = await ask("log");
      this.problem.hidden = true;
      const atEnd = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 4;
      renew(this.log, lines.join("\n"));
      if (atEnd) this.log.scrollTop = this.log.scrollHeight;
    } catch (error) {
      this.problem.hidden = false;
      this.problem.textContent = error.message;
    }
  }
}

/** The value of a field; null where an optional one is left empty. */
function valueOf(input, kind, optional) {
  if (kind === "bool") return input.checked;
  if (input.value === "" && optional) return null;
  return kind === "string" ? input.value : input.valueAsNumber;
}
