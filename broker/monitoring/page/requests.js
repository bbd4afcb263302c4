/** Requests to the process that serves the page, and the stream of what changes. */

/** Ask for something by a POST; throws an Error with the answer's words. */
export async function ask(path, content = {}) {
  let answer;
  try {
    answer = await fetch(`/api/${path}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
    });
  } catch {
    throw new Error("the process that serves this page does not answer");
  }
  const found = await answer.json().catch(() => ({ error: `${answer.status} ${answer.statusText}` }));
  if (answer.status === 401 && path !== "sign-in") location.reload();
  if (!answer.ok || found.error) throw new Error(found.error);
  return found;
}

/** Who may look: `{signed_in, asks}`. */
export async function session() {
  const answer = await fetch("/api/session");
  return answer.json();
}

/**
 * The stream, until `close()`. `query` is what is asked for; `take(kind, content)` is called with
 * what comes: `state`, `events` and `trouble`.
 */
export function stream(query, take) {
  let source, timer, closed = false;
  const open = () => {
    source = new EventSource(`/api/stream${query}`);
    for (const kind of ["state", "events", "trouble"]) {
      source.addEventListener(kind, (event) => take(kind, JSON.parse(event.data)));
    }
    source.onerror = () => {
      take("trouble", { error: "the connection is lost; it is tried again" });
      if (source.readyState !== EventSource.CLOSED) return;  // the browser tries by itself
      session().then((found) => { if (!found.signed_in) location.reload(); }, () => {});
      if (!closed) timer = setTimeout(open, 2000);
    };
  };
  open();
  return { close() { closed = true; clearTimeout(timer); source.close(); } };
}
