/**
 * Elements of the page. Whatever is shown is set as text, never as HTML.
 *
 * Law: what stands there stays. `renew` changes elements in place, so a click whose button is
 * pressed before a change and let go after it is a click, and focus, scroll and selection stay.
 * While a button is pressed in there nothing changes at all, and while the pointer moves over the
 * rows of a list none of them moves.
 */

const SVG = "http://www.w3.org/2000/svg";
const STILL_MS = 2000;
let pressed = null, movedAt = -Infinity;

for (const kind of ["pointerdown", "pointerup", "pointercancel", "dragend"]) {
  document.addEventListener(kind, (event) => { pressed = kind === "pointerdown" ? event.target : null; }, true);
}
addEventListener("blur", () => { pressed = null; });
for (const kind of ["pointerdown", "pointermove"]) {
  document.addEventListener(kind, () => { movedAt = performance.now(); }, { capture: true, passive: true });
}

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
    if (key.startsWith("on")) element[key] = value;  // a property, so that `renew` can hand it on
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/**
 * A table. `columns` are [title, how to show a row, whether it is a number, its heading]; the first
 * one heads its row. Where there is no room for columns the style sheet makes a card of each row,
 * with the titles over the values; roles are written down, since a browser takes such rows for
 * none. `attributes(row)` has a `data-key` by which the row stays the same element.
 */
export function table(caption, columns, rows, attributes = () => ({})) {
  const head = columns.map(([title, , number, heading]) =>
    el("th", { scope: "col", role: "columnheader", class: number ? "number" : null, "aria-sort": heading?.sorted ?? null }, heading?.button ?? title));
  const body = rows.map((row) => el("tr", { role: "row", ...attributes(row) }, columns.map(([title, show, number], place) =>
    el(place ? "td" : "th", { scope: place ? null : "row", role: place ? "cell" : "rowheader", class: number ? "number" : null,
      "data-title": place ? title : null }, show(row) ?? "–"))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "cards", role: "table" }, el("caption", {}, caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)), el("tbody", { role: "rowgroup" }, body)));
}

/**
 * Let the children of `parent` be like these. Elements that are alike, of one name and one
 * `data-key`, stay and are changed; an element that is given again itself is left as it is. While
 * somebody has selected text in there, or presses something, nothing changes.
 */
export function renew(parent, ...children) {
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && parent.contains(selection.anchorNode)) return;
  if (pressed && parent.contains(pressed)) return;
  const active = parent.contains(document.activeElement) ? document.activeElement : null;
  const wanted = children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false);
  match(parent, wanted.map((one) => (typeof one === "string" ? document.createTextNode(one) : one)));
  if (active !== document.activeElement && active?.isConnected) active.focus({ preventScroll: true });
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);

/** Whether one can be changed to be like the other. */
function alike(one, other) {
  return one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function match(parent, wanted) {
  const keyed = new Map([...parent.childNodes].filter(keyOf).map((one) => [keyOf(one), one]));
  if (parent.nodeName === "TBODY" && parent.matches(":hover") && performance.now() - movedAt < STILL_MS
    && keyed.size === parent.childNodes.length && wanted.every(keyOf)) {
    for (const one of wanted) if (keyed.has(keyOf(one))) change(keyed.get(keyOf(one)), one);
    return;
  }
  const given = new Set(wanted);
  let next = parent.firstChild;
  for (const one of wanted) {
    let old = one.parentNode === parent ? one : keyOf(one) ? keyed.get(keyOf(one)) : next;
    while (old && old !== one && (!alike(old, one) || given.has(old))) old = keyOf(one) ? null : old.nextSibling;
    if (!old) {
      parent.insertBefore(one, next);
      continue;
    }
    keyed.delete(keyOf(one));  // of two with one key the second is another element
    if (old === next) next = next.nextSibling;
    else parent.insertBefore(old, next);
    if (old !== one) change(old, one);
  }
  while (next) {
    const after = next.nextSibling;
    next.remove();
    next = after;
  }
}

const LISTENERS = ["onclick", "onchange", "oninput", "onkeydown", "onsubmit"];

function change(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of LISTENERS) if (old[name] !== fresh[name]) old[name] = fresh[name];
  if (old.nodeName === "SELECT" || old.nodeName === "INPUT") return;  // their values are the user's
  match(old, [...fresh.childNodes]);
}

/** Figures with their names, each perhaps with a line. */
export function figures(pairs) {
  return el("dl", { class: "figures" },
    pairs.map(([name, value, line]) => el("div", { "data-key": name }, el("dt", {}, name), el("dd", {}, value, line ?? null))));
}

/** Say something to who listens rather than looks. */
export function say(text) {
  document.getElementById("live").textContent = text;
}

/** Bring details into sight that do not stand beside their list, for want of room. */
export function reveal(detail) {
  const { top, bottom } = detail.getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2 || bottom < 0) detail.scrollIntoView({ block: "start" });
}
