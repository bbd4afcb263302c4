/** A rate over the last minutes, as a small line. */

import { svg } from "./dom.js";
import { number } from "./format.js";

const WIDTH = 90, HEIGHT = 20;

/** `rates`, the oldest first; null where there are too few of them. */
export function sparkline(rates) {
  if (!rates || rates.length < 2) return null;
  const most = Math.max(...rates, 1e-9);
  const points = rates.map((rate, place) => `${((place / (rates.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - 1 - (rate / most) * (HEIGHT - 2)).toFixed(1)}`);
  const label = `last minutes: ${number(Math.min(...rates))} to ${number(most < 1e-8 ? 0 : most)} a second`;
  return svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": label },
    svg("title", {}, label), svg("polyline", { points: points.join(" ") }));
}
