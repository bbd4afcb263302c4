/** The overlay as a drawing, a tree of choice over it, and what is known of each broker. */

import { el, figures, renew, reveal, svg } from "./dom.js";
import { counted, number } from "./format.js";
import { List, wantedOf } from "./list.js";
import { sparkline } from "./sparkline.js";

const MARGIN = 46, RADIUS = 17;
const LETTER = 7.5;  // pixels of a letter, about

export class Network {
  constructor(page) {
    this.page = page;
    this.chosen = null;
    this.tree = "";
    this.trees = el("select", { id: "tree", onchange: () => { this.tree = this.trees.value; this.draw(); } });
    this.drawing = svg("svg", { class: "drawing", role: "group", "aria-label": "Brokers and their links" });
    this.legend = el("p", { class: "note" });
    this.detail = el("section", { class: "box", "aria-label": "Broker" });
    this.notes = el("div");
    this.figures = el("div");
    const asked = () => page.listen(this.query);
    const by = (name) => (row) => (row.rates ? number(row.rates[name]) : "–");
    this.brokers = new List("Brokers", [
      ["name", (row) => row.name, false, "name"],
      ["", (row) => (row.reachable ? (row.name === page.state.root ? "root" : "") : el("span", { class: "bad" }, "out of reach"))],
      ["last minutes", (row) => sparkline(row.line) ?? ""],
      ["rules", (row) => number(row.rules_count), true, "rules_count"],
      ["clients", (row) => (row.clients === null ? "–" : number(row.clients)), true, "clients"],
      ["events/s in", by("received"), true], ["detected/s", by("detected"), true],
      ["delivered/s", by("delivered"), true], ["dropped/s", by("dropped"), true],
    ], { asked });
    this.links = new List("Links", [
      ["between", (row) => row.ends.join(" – ")],
      ["", (row) => (row.up ? "" : el("span", { class: "bad" }, "told by one end alone"))],
      ["there, events/s", (row) => (row.rates ? number(row.rates[0]) : "–"), true],
      ["back, events/s", (row) => (row.rates ? number(row.rates[1]) : "–"), true],
      ["messages waiting", (row) => (row.rates ? number(row.buffered) : "–"), true, "buffered"],
      ["delay", (row) => `${number(row.delay_us / 1e3, 1)} ms`, true, "delay_us"],
    ], { asked, attributes: (row) => ({ "data-key": `row ${row.ends.join(" ")}` }) });
    this.element = el("section", { "aria-labelledby": "network-title" },
      el("h1", { id: "network-title" }, "Network"), this.figures,
      el("div", { class: "split" },
        el("div", { class: "box" },
          el("div", { class: "row" }, el("label", { for: "tree" }, "Tree"), this.trees), this.drawing, this.legend),
        this.detail),
      this.notes, el("div", { class: "part" }, this.brokers.element), this.linked = el("div", { class: "part" }, this.links.element));
    new ResizeObserver(() => this.draw()).observe(this.drawing);
  }

  take(kind, state) {
    if (kind !== "state") return;
    this.chooseTrees(state.trees);
    const rates = state.rates;
    const rate = (title, name) => [title, number(rates?.[name]), sparkline(state.lines[name])];
    const away = state.brokers.filter((one) => !one.reachable).map((one) => one.name);
    renew(this.figures, figures([
      ["brokers", number(state.brokers.length)],
      ...(away.length ? [["out of reach", el("span", { class: "bad" }, away.join(", "))]] : []),
      ["root", state.root ?? "none yet"], ["strategy", state.strategy ?? "alone"],
      rate("events/s in", "received"), rate("detected/s", "detected"), rate("delivered/s", "delivered"), rate("dropped/s", "dropped"),
    ]));
    this.draw();
    this.describe();
    renew(this.notes, this.told(state));
    this.brokers.show(state.lists.brokers);
    this.linked.hidden = !state.links.length;
    this.links.show(state.lists.links);
  }

  get query() { return `?${wantedOf({ brokers: this.brokers.wanted, links: this.links.wanted })}`; }

  chooseTrees(trees) {
    const key = trees.map((one) => one.id).join();
    if (key === this.known) return;
    this.known = key;
    const options = trees.map((one) => el("option", { value: one.id }, one.label));
    this.trees.replaceChildren(el("option", { value: "" }, "none"), ...options);
    if (!trees.some((one) => one.id === this.tree)) this.tree = trees[0]?.id ?? "";
    this.trees.value = this.tree;
  }

  told(state) {
    const away = new Set(state.brokers.filter((one) => !one.reachable).map((one) => one.name));
    const silent = state.unknown.filter((name) => !away.has(name));
    const unknown = silent.length ? `Rates, clients and links of ${silent.join(", ")} are not known here yet.` : null;
    return [unknown, ...state.failures.map((one) => `Not answered: ${one}`),
      ...state.blocked, ...state.closed.map((one) => `Rules go on without inputs of ${one}.`), ...state.overruns]
      .filter(Boolean).map((text) => el("p", { class: "note" }, text));
  }

  // --- the drawing ---

  draw() {
    const state = this.page.state;
    const { clientWidth: width, clientHeight: height } = this.drawing;
    if (!state || !width) return;
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const at = new Map(state.brokers.map((one) => [one.name, [
      MARGIN + one.x * (width - 2 * MARGIN), MARGIN - 12 + one.y * (height - 2 * MARGIN)]]));
    const most = Math.max(1, ...state.links.map((one) => sum(one.rates)));
    const tree = state.trees.find((one) => one.id === this.tree);
    renew(this.drawing,
      state.links.map((link) => drawLink(link, at, most)),
      (tree?.edges ?? []).flatMap((edge) => drawEdge(edge, at)),
      state.brokers.map((broker) => this.drawBroker(broker, at.get(broker.name), tree?.root ?? state.root)));
    this.legend.textContent = state.links.length
      ? `Width is traffic, ${number(most)} events/s at most; dashed: not known here. Arrows lead to the root of the tree.`
      : "This broker works alone.";
  }

  drawBroker(broker, [x, y], root) {
    const kinds = ["broker", broker.name === root && "root", !broker.reachable && "away", !broker.known && "unknown"];
    const choose = () => { this.chosen = broker.name; this.draw(); this.describe(); reveal(this.detail); };
    const text = `Broker ${broker.name}, ${counted(broker.rules_count, "rule")}${broker.reachable ? "" : ", out of reach"}`;
    return svg("g", {
      class: kinds.filter(Boolean).join(" "), transform: `translate(${x} ${y})`, tabindex: "0", role: "button",
      "aria-label": text, "aria-pressed": String(this.chosen === broker.name), "data-key": `broker ${broker.name}`,
      onclick: choose, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } },
    }, svg("circle", { r: RADIUS }),
    broker.rules_count ? svg("text", { class: "in", "text-anchor": "middle", y: 5 }, number(broker.rules_count)) : null,
    label(broker.name, x, this.drawing.clientWidth),
    broker.rates ? svg("text", { class: "quiet", "text-anchor": "middle", y: RADIUS + 31 }, `${number(broker.rates.received)}/s`) : null);
  }

  // --- in words ---

  describe() {
    const state = this.page.state;
    const broker = state.brokers.find((one) => one.name === this.chosen) ?? state.brokers.find((one) => one.name === state.broker);
    const more = broker.rules_count - broker.rules.length;
    renew(this.detail,
      el("h2", {}, `Broker ${broker.name}`),
      el("p", { class: "note" }, [broker.name === state.root ? "root" : "", broker.reachable ? "" : "out of reach",
        broker.known ? `${counted(broker.clients, "client")}` : "its own figures are not known here"].filter(Boolean).join(" · ")),
      el("h3", {}, "Rules evaluated here"),
      broker.rules.length ? el("p", {}, broker.rules.join(", "), more > 0 ? ` and ${number(more)} more` : "") : el("p", { class: "quiet" }, "none"),
      broker.fragments ? el("p", { class: "note" }, `Forwards for ${counted(broker.fragments, "rule")}.`) : null,
      broker.waits.length ? el("h3", {}, "What waits") : null,
      broker.waits.map((text) => el("p", { class: "warn" }, text)));
  }
}

const sum = (rates) => (rates ? rates[0] + rates[1] : 0);

/** A name below a broker at `x`, within a drawing of that width. */
function label(name, x, width) {
  const most = Math.floor(width / LETTER);
  const text = name.length > most ? `${name.slice(0, most - 1)}…` : name;
  const half = (text.length * LETTER) / 2;
  const shift = Math.max(half, Math.min(width - half, x)) - x;
  return svg("text", { "text-anchor": "middle", x: shift, y: RADIUS + 16 }, text);
}

function drawLink(link, at, most) {
  const [[x1, y1], [x2, y2]] = link.ends.map((name) => at.get(name) ?? [0, 0]);
  const kind = `link${link.up ? "" : " down"}${link.rates ? "" : " unknown"}`;
  const width = link.rates ? 1 + 9 * Math.sqrt(sum(link.rates) / most) : 1;
  return svg("line", { class: kind, x1, y1, x2, y2, "stroke-width": width.toFixed(1) },
    svg("title", {}, `${link.ends.join(" – ")}: ${link.rates ? `${number(sum(link.rates))} events/s` : "not known here"}`));
}

function drawEdge([child, father], at) {
  if (!at.has(child) || !at.has(father)) return [];
  const [[x1, y1], [x2, y2]] = [at.get(child), at.get(father)];
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const gap = RADIUS + 4;
  const [tx, ty] = [x2 - ux * gap, y2 - uy * gap];
  const [bx, by] = [tx - ux * 9, ty - uy * 9];
  return [svg("line", { class: "edge", x1: x1 + ux * gap, y1: y1 + uy * gap, x2: bx, y2: by }),
    svg("path", { class: "arrow", d: `M${tx} ${ty} L${bx - uy * 5} ${by + ux * 5} L${bx + uy * 5} ${by - ux * 5} Z` })];
}
