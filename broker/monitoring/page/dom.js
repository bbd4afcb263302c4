/** Elements of the page. Whatever is shown is set as text, never as HTML. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children. `class`, `for` and the like are attributes; those that
 * begin with `on` are listeners; null and false leave an attribute out.
 * @param {string} name @param {Object<string, any>} attributes @param {...any} children
 * @returns {any}
 */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for a drawing. @returns {any} */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((one) => one !== null && one !== undefined));
  return element;
}

/**
 * A table. `columns` are [title, how to show a row, whether it is a number]; the first one heads
 * its row. Where there is no room for columns the style sheet makes a card of each row, with the
 * titles over the values; roles are written down, since a browser takes such rows for none.
 */
export function table(caption, columns, rows, attributes = () => ({})) {
  const head = columns.map(([title, , number]) =>
    el("th", { scope: "col", role: "columnheader", class: number ? "number" : null }, title));
  const body = rows.map((row) => el("tr", { role: "row", ...attributes(row) }, columns.map(([title, show, number], place) =>
    el(place ? "td" : "th", { scope: place ? null : "row", role: place ? "cell" : "rowheader", class: number ? "number" : null,
      "data-title": place ? title : null }, show(row) ?? "–"))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "cards", role: "table" }, el("caption", {}, caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)), el("tbody", { role: "rowgroup" }, body)));
}

/**
 * Put new children in the place of old ones, and leave the focus on what has the same `data-key`.
 * While somebody has selected text in there, nothing changes.
 */
export function renew(parent, ...children) {
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && parent.contains(selection.anchorNode)) return;
  const active = parent.contains(document.activeElement) ? document.activeElement : null;
  const key = active?.getAttribute("data-key");
  const scrolls = [...parent.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  const region = active ? [...parent.querySelectorAll(".scroll")].indexOf(active) : -1;
  parent.replaceChildren(...children.flat().filter(Boolean));
  const regions = parent.querySelectorAll(".scroll");
  scrolls.forEach((left, place) => { if (regions[place] && left) regions[place].scrollLeft = left; });
  const again = key ? parent.querySelector(`[data-key="${CSS.escape(key)}"]`) : regions[region];
  again?.focus({ preventScroll: true });
}

/** Figures with their names. */
export function figures(pairs) {
  return el("dl", { class: "figures" },
    pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** Say something to who listens rather than looks. */
export function say(text) {
  document.getElementById("live").textContent = text;
}
