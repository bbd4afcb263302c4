/** A rule is written, checked, tried over a file or the last minutes, asked why, and deployed. */

import { el, renew, say, table } from "./dom.js";
import { Editor } from "./editor.js";
import { counted, data, number, seconds, time } from "./format.js";
import { ask } from "./requests.js";
import { timeline } from "./timeline.js";

const FILE_MAX = 15 * 2 ** 20;
const EXAMPLE = `rule fire:
define Fire(area: string, temperature: float)
from   Smoke(area = $a) and
       last Temp(area = $a, value > 45) within 5 min from Smoke
where  area = $a, temperature = Temp.value
`;
const EVENTS = `{"type": "Temp", "time": 10, "source": "s", "id": "t1", "data": {"area": "hall", "value": 47.5}}
{"type": "Temp", "time": 60, "source": "s", "id": "t2", "data": {"area": "hall", "value": 41.0}}
{"type": "Smoke", "time": 330, "source": "s", "id": "m1", "data": {"area": "hall"}}
{"type": "Temp", "time": 335, "source": "s", "id": "t3", "data": {"area": "hall", "value": 60.0}}
{"type": "Smoke", "time": 340, "source": "s", "id": "m2", "data": {"area": "hall"}}
`;

export class Playground {
  constructor(page) {
    this.page = page;
    this.schemas = [];
    this.logSchemas = [];
    this.found = null;
    this.files = [];
    this.over = "file";
    this.run = el("button", { class: "main", type: "button", disabled: true, onclick: () => this.tried() }, "Run");
    this.deploy = el("button", { type: "button", disabled: true, onclick: () => this.deployed() }, "Deploy");
    this.replace = el("input", { type: "checkbox" });
    this.editor = new Editor("Rules", () => this.enable(), () => ({ file: this.schemas, log: this.logSchemas })[this.over] ?? []);
    this.pasted = el("textarea", { id: "pasted", rows: "7", spellcheck: "false", onchange: () => this.paste() });
    this.file = el("input", { type: "file", id: "file", multiple: true, accept: ".jsonl,.ndjson,.json,.csv,.tsv,.parquet,.arrow,.gz,.zst,.zip", onchange: () => this.load() });
    this.typeName = el("input", { type: "text", id: "type-name", size: "14", onchange: () => this.inspect(this.files) });
    this.facts = el("p", { class: "note", role: "status" });
    this.result = el("section", { "aria-label": "Result" });
    this.why = el("div");
    this.status = el("p", { role: "status" });
    const choice = (value, text, checked) => el("label", {}, el("input", { type: "radio", name: "over", value, checked, onchange: () => this.choose(value) }), text);
    this.fileFields = el("div", {},
      el("div", { class: "row" }, el("label", { for: "file" }, "Files: JSON lines, CSV, Parquet, Arrow"), this.file),
      el("label", { for: "pasted" }, "or pasted"), el("div", {}, this.pasted),
      el("div", { class: "row" }, el("label", { for: "type-name" }, "Type of events that name none"), this.typeName));
    this.liveFields = el("p", { class: "note", hidden: true });
    this.minutes = el("input", { type: "number", id: "minutes", min: "1", max: "1000000", value: "60", required: true, onchange: () => this.inspectLog() });
    this.logFields = el("div", { hidden: true },
      el("div", { class: "row" }, el("label", { for: "minutes" }, "Last minutes of the log"), this.minutes),
      el("p", { class: "note" }, "What has been published at this broker, up to 200,000 events. Rules that are deployed are run beside these."));
    this.element = el("section", { "aria-labelledby": "playground-title" }, el("h1", { id: "playground-title" }, "Playground"),
      el("div", { class: "split" },
        el("div", {}, this.editor.element,
          el("div", { class: "row" }, this.run, this.deploy, el("label", {}, this.replace, "replace rules of the same names")), this.status),
        el("fieldset", {}, el("legend", {}, "Over which events"),
          el("div", { class: "row" }, choice("file", "a file", true), choice("live", "the last minutes, live"),
            page.log ? choice("log", "the log of this broker") : null),
          this.fileFields, this.liveFields, this.logFields, this.facts)),
      this.result, this.why);
    this.pasted.value = EVENTS;
    this.editor.text = EXAMPLE;
    this.paste();
  }

  get isLive() { return this.over === "live"; }

  get query() { return this.isLive ? "?events=1&whole=1" : ""; }

  shown() {
    if (this.page.draft === null) return;
    this.editor.text = this.page.draft;
    this.page.draft = null;
    this.replace.checked = true;
  }

  take(kind, found) {
    if (kind !== "events" || !this.isLive) return;
    const { kept } = found;
    const types = Object.entries(kept.types).map(([name, count]) => `${name} ${number(count)}`).join(", ");
    this.facts.textContent = kept.problem || `${counted(kept.events, "event")} of the last ${seconds(kept.seconds)}: ${types || "none yet"}`;
  }

  choose(value) {
    this.over = value;
    this.fileFields.hidden = value !== "file";
    this.liveFields.hidden = value !== "live";
    this.logFields.hidden = value !== "log";
    this.liveFields.textContent = "While this is chosen all events of the network are kept here, up to 50,000 and five minutes, in this page's own process. Rules that are deployed are run beside these.";
    this.facts.textContent = value === "file" ? this.told ?? "" : "";
    if (value === "log") this.inspectLog();
    this.page.listen(this.query);
    this.editor.typed();
  }

  enable() {
    this.run.disabled = !this.editor.isGood || this.isBusy || (this.over === "file" && !this.isRead) || (this.over === "log" && !this.minutes.validity.valid);
    this.deploy.disabled = !this.editor.isGood;
  }

  // --- the events ---

  /** Take what is pasted: it is a file, too. */
  paste() {
    this.file.value = "";
    const text = this.pasted.value;
    const form = /^\s*[{[]/.test(text) ? "jsonl" : "csv";
    return this.inspect(text.trim() ? [new File([text], `pasted.${form}`)] : []);
  }

  load() {
    const files = [...this.file.files];
    if (!files.length) return;
    const size = files.reduce((sum, one) => sum + one.size, 0);
    if (size > FILE_MAX) {
      this.facts.textContent = `${counted(files.length, "file")} of ${number(size / 2 ** 20)} MiB; expected at most 15. rexmq detect takes larger ones.`;
      return;
    }
    this.pasted.value = "";
    return this.inspect(files);
  }

  /** Have files read; all that is wrong with them is told. */
  async inspect(files) {
    this.files = files;
    this.isRead = false;
    this.schemas = [];
    const tell = (...content) => { if (this.files === files && this.over === "file") this.facts.replaceChildren(...content); };
    tell(files.length ? "reading…" : "");
    this.enable();
    if (!files.length) return;
    try {
      const read = await Promise.all(files.map((one) => sent(one, this.typeName.value)));
      const found = await this.trial({ do: "inspect", files: read });
      if (this.files !== files) return;  // others were chosen meanwhile
      this.sent = read;
      this.isRead = true;
      this.schemas = found.schemas;
      this.told = `${counted(found.events, "event")} from ${time(found.first)} to ${time(found.last)}: ${found.schemas.join(", ")}`;
      tell(this.told);
    } catch (error) {
      tell(el("ul", { class: "problems" }, error.message.split("\n").map((line) => el("li", { class: "bad" }, line))));
    }
    this.editor.typed();
  }

  async inspectLog() {
    this.facts.textContent = "reading…";
    this.enable();
    try {
      const found = await this.trial({ do: "inspect", log_s: this.minutes.valueAsNumber * 60 });
      if (this.over !== "log") return;
      this.logSchemas = found.schemas;
      this.editor.typed();
      this.facts.textContent = found.events ? `${counted(found.events, "event")} from ${time(found.first)} to ${time(found.last)}` : "the log has no event";
    } catch (error) {
      this.facts.replaceChildren(el("span", { class: "bad" }, error.message));
    }
  }

  get experiment() {
    if (this.over === "log") return { text: this.editor.text, log_s: this.minutes.valueAsNumber * 60 };
    const events = this.isLive ? {} : { files: this.sent };
    return { text: this.editor.text, ...events };
  }

  // --- what is done ---

  /** One trial after the other: of one user one is under way at a time. */
  trial(content) {
    const asked = (this.turn ?? Promise.resolve()).then(() => ask("try", content));
    this.turn = asked.catch(() => {});
    return asked;
  }

  async tried() {
    await this.busy("It runs…", async () => {
      this.found = await this.trial({ do: "run", ...this.experiment });
      this.chosen = this.found.firings[0]?.name ?? null;
      const total = Object.values(this.found.counts).reduce((one, other) => one + other, 0);
      this.status.textContent = `${counted(total, "composite event")} of ${counted(this.found.events_count, "event")}.`;
      this.why.replaceChildren();
      this.show();
    });
  }

  async deployed() {
    await this.busy("It is deployed…", async () => {
      const found = await ask("deploy", { text: this.editor.text, replace: this.replace.checked });
      this.status.textContent = `Deployed: ${found.rules.map((one) => one.name).join(", ")}`;
    });
  }

  async busy(text, work) {
    this.isBusy = true;
    this.enable();
    this.status.textContent = text;
    try {
      await work();
    } catch (error) {
      this.status.replaceChildren(el("span", { class: "bad" }, error.message));
    }
    this.isBusy = false;
    this.enable();
  }

  show() {
    const { firings, events, counts, events_count: count } = this.found;
    const all = [...events, ...firings];
    const width = Math.max(300, this.element.clientWidth - 40);
    const left = count - events.length;
    const event = all.find((one) => one.name === this.chosen);
    const total = Object.values(counts).reduce((one, other) => one + other, 0);
    renew(this.result, el("h2", {}, "Matches"),
      el("p", { class: "note" }, Object.entries(counts).map(([rule, found]) => `${rule}: ${number(found)}`).join(", "),
        left > 0 ? `; ${number(left)} events are not drawn` : "", total > firings.length ? `; the first ${number(firings.length)} are shown` : "",
        ". Choose an event to ask why a rule fired there, or did not."),
      el("div", { class: "box" }, timeline(all, width, { composite: (one) => Boolean(one.rule), chosen: this.chosen, choose: (one) => this.choose_event(one) })),
      event ? this.questions(event) : null,
      firings.length ? table("Composite events", [
        ["time", (row) => el("button", { class: "plain", type: "button", "data-key": `row ${row.name}`, onclick: () => this.choose_event(row) }, el("span", { class: "time" }, time(row.time)))],
        ["rule", (row) => row.rule], ["type", (row) => row.type], ["attributes", (row) => el("span", { class: "attributes" }, data(row.data))], ["causes", (row) => row.cause.join(", ")],
      ], firings.slice(0, 200), (row) => ({ "aria-selected": row.name === this.chosen ? "true" : null })) : null);
  }

  choose_event(event) {
    this.chosen = event.name;
    this.why.replaceChildren();
    this.show();
    say(`${event.type} at ${time(event.time)}`);
  }

  questions(event) {
    const rules = event.rule ? [event.rule]
      : Object.entries(this.found.terminators).filter(([, types]) => types.includes(event.type)).map(([rule]) => rule);
    const name = event.rule ? event.cause[0] : event.name;
    return el("div", { class: "row" }, el("span", {}, `${event.type} ${event.rule ? "" : event.name} ${data(event.data)}`),
      rules.map((rule) => el("button", { type: "button", "data-key": `why ${rule}`, onclick: () => this.explain(rule, name) }, event.rule ? `Why did ${rule} fire?` : `Why did ${rule} fire here, or not?`)),
      rules.length ? null : el("span", { class: "quiet" }, "No rule ends with an event of this type."));
  }

  async explain(rule, event) {
    await this.busy("It is looked into…", async () => {
      const found = await this.trial({ do: "explain", ...this.experiment, rule, event });
      this.why.replaceChildren(el("h2", {}, `Rule ${rule} at ${event}`), el("pre", { class: "why", tabindex: "0" }, found.text));
      this.status.textContent = "";
      this.why.scrollIntoView({ block: "nearest" });
      say("Explained below");
    });
  }
}

/** A file as it is sent; the type of events that name none is that of the page, or of its name. */
async function sent(file, type) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 32768) text += String.fromCharCode(...bytes.subarray(start, start + 32768));
  const stem = /^([^.]+)\.(csv|tsv|parquet|arrow)\b/i.exec(file.name)?.[1];
  return { name: file.name, content: btoa(text), type: type || (stem && stem !== "pasted" ? stem : null) };
}
