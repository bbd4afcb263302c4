/** The page: which view is shown, who is signed in, and the stream that feeds them. */

import { el, say } from "./dom.js";
import { number, seconds } from "./format.js";
import { ask, session, stream } from "./requests.js";
import { Network } from "./network.js";
import { Rules } from "./rules.js";
import { Events } from "./events.js";
import { Playground } from "./playground.js";
import { Clients } from "./clients.js";
import { Operate } from "./operate.js";

const VIEWS = { network: Network, rules: Rules, events: Events, playground: Playground, clients: Clients, operate: Operate };
const content = document.getElementById("content");
const trouble = document.getElementById("trouble");

/** What views share: the last state, and what one hands to another. */
const page = { state: null, draft: null, log: false, listen, go };
const made = {};
let view = null, streaming = null, query = null;

/** Ask for what a view needs to be sent. */
function listen(asked) {
  if (asked === query) return;
  query = asked;
  streaming?.close();
  streaming = stream(asked, take);
}

function take(kind, found) {
  if (kind === "trouble") return showTrouble(found.error);
  if (kind === "state") {
    page.state = found;
    showTrouble("");
    summarise(found);
  }
  view?.take?.(kind, found);
}

function showTrouble(text) {
  if (trouble.textContent === text) return;
  trouble.textContent = text;
  trouble.hidden = !text;
}

function summarise(state) {
  document.getElementById("broker").textContent = state.broker;
  const away = state.brokers.filter((one) => !one.reachable).map((one) => one.name);
  const rates = state.rates ? `${number(state.rates.received)} events/s in, ${number(state.rates.detected)} detected` : "";
  const words = [`up ${seconds(state.uptime_s)}`, rates, state.settled ? "" : "not settled"];
  document.getElementById("summary").textContent = words.filter(Boolean).join(" · ");
  document.getElementById("away").textContent = away.length ? `${away.slice(0, 3).join(", ")}${away.length > 3 ? ` and ${away.length - 3} more` : ""} out of reach` : "";
  document.title = `${state.broker} – RexMQ`;
}

/** Show another view. */
function go(name) {
  if (location.hash === `#${name}`) show();
  else location.hash = name;
}

function show() {
  const name = location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "network";
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === `#${name}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view = made[name] ??= new VIEWS[name](page);
  content.replaceChildren(view.element);
  listen(view.query ?? "");
  view.shown?.();
  if (page.state) view.take?.("state", page.state);
}

function signIn(error, takesKeys) {
  const token = el("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true });
  const wrong = el("p", { class: "bad", role: "alert" }, error ?? "");
  const form = el("form", { class: "sign-in box", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await ask("sign-in", { token: token.value });
      location.reload();
    } catch (refusal) {
      wrong.textContent = refusal.message;
      token.select();
    }
  } }, el("h1", {}, "Sign in"), el("label", { for: "token" }, "Token"), token, wrong,
  el("button", { class: "main", type: "submit" }, "Sign in"),
  takesKeys ? el("p", { class: "note" }, "Or by your key, with the link that this prints: ",
    el("code", {}, `rexmq page ${location.origin} --key FILE --server-key FILE`)) : null);
  document.querySelector("nav").hidden = true;
  content.replaceChildren(form);
  token.focus();
}

/** The code of a link that `rexmq page` has printed. It goes from the address, and so from history. */
function takeCode() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) history.replaceState(null, "", location.pathname);
  return code;
}

async function begin(code) {
  let found;
  try {
    found = await session();
  } catch {
    showTrouble("the process that serves this page does not answer; it is tried again");
    setTimeout(begin, 2000, code);
    return;
  }
  if (code) {
    try {
      await ask("sign-in", { code });
      found = await session();
    } catch (refusal) {
      return signIn(refusal.message, found.takes_keys);
    }
  }
  if (!found.signed_in) return found.asks ? signIn("", found.takes_keys) : showTrouble(found.error);
  page.log = found.log;
  const out = document.getElementById("sign-out");
  out.hidden = !found.asks;
  if (found.user) out.textContent = `Sign out ${found.user}`;
  out.addEventListener("click", () => ask("sign-out").finally(() => location.reload()));
  addEventListener("hashchange", () => { show(); content.focus({ preventScroll: true }); say(document.querySelector("nav [aria-current]").textContent); });
  show();
}

/** A link that is opened where the page is already. */
addEventListener("hashchange", () => { if (location.hash.startsWith("#code=")) location.reload(); });

begin(takeCode());
