// A conversation with a broker that goes on over links that end: docs/protocol.md, section 1.

import { decode, encode } from "@msgpack/msgpack";
import { joined, open } from "./transports.js";

const VERSION = 1;
const WELCOMED_MS = 5000;
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 1000;
const MISSED_MAX = 15;

export const KINDS = {
  HELLO: 1, ADVERTISE: 2, PUBLISH: 4, PROMISE: 5, SUBSCRIBE: 6, DEALT_WITH: 26, NACK: 36,
  WELCOME: 16, CONFIRMED: 17, REFUSED: 18, ACKNOWLEDGED: 19, DELIVERY: 20, REJECTED: 21,
  SUBSCRIPTION_PAUSED: 22, CREDIT: 32, HEARTBEAT: 33, GOODBYE: 34,
};
// Codes of links that would end so again.
const FINAL = new Set(["version", "bad-name", "protocol", "schema", "bad-event", "queue-full", "not-allowed", "in-use"]);

export class RexmqError extends Error {
  constructor(reason, code = "") {
    super(reason);
    this.name = "RexmqError";
    this.code = code;
  }
}

// `owner` has `onReady(welcome)`, which says what is to be said on each link, `onMessage(kind,
// fields, columns)`, `onFailure(error)` and `idle()`, which says something.
export class Link {
  #sending = new WeakSet(); // outboxes whose first message is being sent

  constructor(owner, endpoints, { name = "", heartbeatS = 2, keys = null } = {}) {
    this.owner = owner;
    this.endpoints = [endpoints].flat().flatMap((text) => text.split(","));
    this.name = name;
    this.heartbeatMs = heartbeatS * 1000;
    this.curve = keys && {
      curvePublicKey: keys.publicKey,
      curveSecretKey: keys.secretKey,
      curveServerKey: keys.serverKey,
    };
    this.instance = BigInt(Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1)) + 1);
    this.socket = this.outbox = null;
    this.requests = new Map();
    this.request = 0;
    this.isReady = this.isClosed = false;
    this.ended = this.#run();
  }

  // Say a message on the link that there is; it is forgotten if there is none.
  say(kind, fields, columns = null) {
    if (this.outbox === null) return;
    const head = Uint8Array.of(0x52, 0x58, VERSION, kind);
    const first = joined([head, encode(fields, { useBigInt64: true })]);
    this.outbox.push(columns === null ? [first] : [first, columns]);
    this.spokeAt = Date.now();
    this.#pump(this.socket, this.outbox);
  }

  // What the broker confirms a request with. Rejects if it refuses, or the link ends before.
  ask(kind, ...fields) {
    this.request += 1;
    const number = this.request;
    return new Promise((resolve, reject) => {
      this.requests.set(number, { resolve, reject });
      this.say(kind, [number, ...fields]);
    });
  }

  // Say that nothing follows, and wait until the broker knows, or for so long.
  async close(timeoutMs = 5000) {
    if (this.isClosed) return;
    this.isClosed = true;
    if (this.isReady) {
      const kept = new Promise((resolve) => (this.onGoodbye = resolve));
      this.say(KINDS.GOODBYE, ["", "closing"]);
      await Promise.race([kept, new Promise((resolve) => setTimeout(resolve, timeoutMs).unref?.())]);
    }
    this.socket?.close();
    this.wake?.();
    await this.ended;
  }

  async #run() {
    let pauseMs = PAUSE_MIN_MS;
    for (let place = 0; !this.isClosed; place += 1) {
      try {
        if (await this.#converse(this.endpoints[place % this.endpoints.length])) {
          pauseMs = PAUSE_MIN_MS;
          place -= 1; // the same broker may be back at once
        }
      } catch (error) {
        this.isClosed = true;
        this.#forget(error);
        this.owner.onFailure(error);
        return;
      }
      if (this.isClosed) break;
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, pauseMs);
      });
      pauseMs = Math.min(PAUSE_MAX_MS, 2 * pauseMs);
    }
  }

  // One link; gives whether it was welcomed. Throws what no other try could mend.
  async #converse(endpoint) {
    const socket = await open(endpoint, this.curve);
    const hangUp = () => socket.closed || socket.close();
    if (this.isClosed) {
      hangUp();
      return false;
    }
    this.socket = socket;
    this.outbox = [];
    let welcomed = false;
    this.heardAt = Date.now();
    this.silentMs = WELCOMED_MS;
    const timer = setInterval(() => {
      if (Date.now() - this.heardAt > this.silentMs) hangUp();
      else if (welcomed && Date.now() - this.spokeAt >= this.heartbeatMs) this.owner.idle();
    }, Math.min(this.heartbeatMs, WELCOMED_MS) / 2);
    try {
      this.say(KINDS.HELLO, [VERSION, this.name, this.heartbeatMs / 1000, this.instance, false]);
      for await (const [first, columns] of socket) {
        this.heardAt = Date.now();
        const [kind, fields] = [first[3], decode(first.subarray(4), { useBigInt64: true })];
        if (kind === KINDS.WELCOME) {
          welcomed = this.isReady = true;
          this.silentMs = MISSED_MAX * Number(fields[4]) * 1000;
          this.owner.onReady(fields);
        } else if (kind === KINDS.GOODBYE) {
          this.#hearGoodbye(fields);
          break;
        } else {
          this.#hear(kind, fields, columns);
        }
      }
    } catch (error) {
      if (error instanceof RexmqError || !socket.closed) throw error;
    } finally {
      clearInterval(timer);
      this.isReady = false;
      this.outbox = null;
      hangUp();
      this.#forget(new RexmqError(`${endpoint}: the link has ended`, "silent"));
    }
    return welcomed;
  }

  #hear(kind, fields, columns) {
    if (kind === KINDS.CONFIRMED) {
      this.#settle(fields[0])?.resolve(fields[1]);
    } else if (kind === KINDS.REFUSED) {
      const error = new RexmqError(fields[2], fields[1]);
      if (fields[0] !== null) this.#settle(fields[0])?.reject(error);
      else if (FINAL.has(error.code)) throw error;
    } else if (kind !== KINDS.HEARTBEAT) {
      this.owner.onMessage(kind, fields, columns);
    }
  }

  #hearGoodbye([reason, code]) {
    this.onGoodbye?.();
    if (!this.isClosed && FINAL.has(code)) throw new RexmqError(reason, code);
  }

  #settle(number) {
    const request = this.requests.get(Number(number));
    this.requests.delete(Number(number));
    return request;
  }

  #forget(error) {
    const requests = [...this.requests.values()];
    this.requests.clear();
    for (const { reject } of requests) reject(error);
  }

  // One message after another: a socket takes no second one while it sends.
  async #pump(socket, outbox) {
    if (this.#sending.has(outbox)) return;
    this.#sending.add(outbox);
    try {
      while (outbox.length) await socket.send(outbox.shift());
    } catch {
      // the link has ended, and what was not acknowledged is said again on the next one
    } finally {
      this.#sending.delete(outbox);
    }
  }
}
