/** Events on a timeline: a lane for each type, and lines from composite events to their causes. */

import { svg } from "./dom.js";
import { data, seconds, time } from "./format.js";

const LANE = 34, LEFT = 118, RIGHT = 14, FOOT = 18, LANES_MAX = 12;

/**
 * A drawing of `events`, each with `name`, `type`, `time`, `data` and `cause`; `composite(event)`
 * says which are composite, `chosen` is the name of one, `choose(event)` is called for another.
 * Arrow keys go from one to the next.
 */
export function timeline(events, width, { composite, chosen, choose }) {
  const placed = events.filter((one) => one.time !== null);
  const types = [...new Set(placed.filter((one) => !composite(one)).map((one) => one.type)),
    ...new Set(placed.filter(composite).map((one) => one.type))].slice(0, LANES_MAX);
  const lanes = new Map(types.map((type, place) => [type, 20 + place * LANE]));
  const shown = placed.filter((one) => lanes.has(one.type)).sort((one, other) => one.time - other.time);
  const first = shown[0]?.time ?? 0, last = shown.at(-1)?.time ?? 0;
  const height = 20 + types.length * LANE + FOOT;
  const x = (at) => (last === first ? (LEFT + width - RIGHT) / 2 : LEFT + 8 + ((at - first) / (last - first)) * (width - LEFT - RIGHT - 8));
  const where = new Map(shown.map((one) => [one.name, [x(one.time), lanes.get(one.type)]]));
  const picture = svg("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": "Timeline of events" });
  for (const [type, y] of lanes) {
    picture.append(svg("line", { class: "lane", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
      svg("text", { x: 0, y: y + 4 }, type.length > 17 ? `${type.slice(0, 16)}…` : type));
  }
  const lit = shown.filter((one) => one.name === chosen);
  for (const one of (lit.length && composite(lit[0]) ? lit : shown.length <= 400 ? shown.filter(composite) : [])) {
    for (const cause of one.cause) {
      if (!where.has(cause)) continue;
      const [[x1, y1], [x2, y2]] = [where.get(one.name), where.get(cause)];
      picture.append(svg("path", { class: "cause", d: `M${x1} ${y1} C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}` }));
    }
  }
  const causes = new Set(lit.flatMap((one) => one.cause));
  const marks = shown.map((one, place) => {
    const [cx, cy] = where.get(one.name);
    const kinds = ["event", composite(one) && "composite", (one.name === chosen || causes.has(one.name)) && "chosen"];
    return svg("g", {
      class: kinds.filter(Boolean).join(" "), transform: `translate(${cx} ${cy})`, role: "button",
      tabindex: one.name === chosen || (!lit.length && place === 0) ? "0" : "-1", "data-key": `event ${one.name}`,
      "aria-label": `${one.type} at ${time(one.time)}, ${data(one.data)}`, "aria-pressed": String(one.name === chosen),
      onclick: () => choose(one),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) { event.preventDefault(); marks[place + step]?.focus(); }
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(one); }
      },
    }, svg("circle", { r: 6 }), svg("title", {}, `${one.type} ${one.name}\n${time(one.time)}\n${data(one.data)}`));
  });
  picture.append(...marks);
  if (shown.length) {
    picture.append(svg("text", { x: LEFT, y: height - 4 }, width < 480 ? time(first).slice(0, 19) : time(first)),
      svg("text", { x: width - RIGHT, y: height - 4 - (width < 480 ? 16 : 0), "text-anchor": "end" }, last === first ? "" : `${seconds((last - first) / 1e6)} later`));
  }
  return picture;
}
