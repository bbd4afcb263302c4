// Publishers: sources of events. docs/protocol.md, section 4.

import { rowOf, schemaOf, write } from "./columns.js";
import { KINDS, Link, RexmqError } from "./link.js";

const ROWS_MAX = 1024;
const LATER = globalThis.setImmediate ?? ((act) => setTimeout(act)); // browsers have no such thing

export class Publisher {
  #types = new Map();
  #waiting = []; // published, and not acknowledged; the first #sent of them are on their way
  #sent = 0;
  #credit = 0;
  #number = 0;
  #promised = 0n;
  #isAdvertised = false;
  #isDue = false;
  #rooms = [];

  // `types`: { Temp: { area: "string", value: "float" } }. `disorderS`: by how many seconds an event
  // with a time may be late.
  constructor(endpoints, { name, types, disorderS = 0, unacknowledgedMax = 65536, ...options }) {
    for (const [type, attributes] of Object.entries(types)) {
      this.#types.set(type, schemaOf(type, attributes));
    }
    this.disorderUs = BigInt(Math.round(disorderS * 1e6));
    this.unacknowledgedMax = unacknowledgedMax;
    this.link = new Link(this, endpoints, { ...options, name });
    this.ready = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
    this.ready.catch(() => {});
  }

  // Publish an event. Gives a promise that is kept when the broker has it; `time`: a Date, or a
  // bigint of microseconds; without one it is stamped. Throws what does not fit, and when too much
  // is unacknowledged: `await publisher.room()` before.
  publish(type, data, { time = null, id = null } = {}) {
    if (this.failure) throw this.failure;
    const schema = this.#types.get(type);
    if (schema === undefined) throw new TypeError(`the type ${type} was not named`);
    const values = rowOf(schema, data);
    if (this.#waiting.length >= this.unacknowledgedMax) {
      throw new RexmqError(`${this.#waiting.length} events are unacknowledged`, "limit");
    }
    const event = { type, values, id, time: microseconds(time), number: 0 };
    const receipt = new Promise((resolve, reject) => Object.assign(event, { resolve, reject }));
    receipt.catch(() => {}); // whoever does not wait for it is not ended by it
    this.#waiting.push(event);
    this.#soon();
    return receipt;
  }

  // Publish events `{ type, data, time, id }`; the promise is kept when the broker has all of them.
  async publishBatch(events) {
    const receipts = [];
    for (const { type, data, ...named } of events) {
      await this.room();
      receipts.push(this.publish(type, data, named));
    }
    await Promise.all(receipts);
  }

  // Wait until another event may be published.
  async room() {
    while (!this.failure && this.#waiting.length >= this.unacknowledgedMax) {
      await new Promise((resolve) => this.#rooms.push(resolve));
    }
  }

  // Wait until the broker has everything, say that nothing follows, and leave.
  async close() {
    await Promise.all(this.#waiting.map(settled));
    await this.link.close();
  }

  // --- what the link says ---

  async onReady([, , last, credit]) {
    this.#isAdvertised = false;
    this.#credit = Number(credit);
    this.#number = Math.max(this.#number, Number(last));
    this.#acknowledge(Number(last));
    this.#sent = 0;
    try {
      await this.link.ask(KINDS.ADVERTISE, [...this.#types.values()]);
    } catch (error) {
      if (error.code !== "silent") this.#fail(error);
      return;
    }
    this.#isAdvertised = true;
    this.link.say(KINDS.PROMISE, [this.#promise()]);
    this.settle.resolve();
    this.#send();
  }

  onMessage(kind, fields) {
    if (kind === KINDS.CREDIT) {
      this.#credit += Number(fields[0]);
      this.#send();
    } else if (kind === KINDS.REJECTED) {
      this.#reject(fields);
    } else if (kind === KINDS.ACKNOWLEDGED) {
      this.#acknowledge(Number(fields[0]));
    }
  }

  onFailure(error) {
    this.#fail(error);
  }

  // A source that is silent promises by its clock, so that no rule waits for it.
  idle() {
    this.link.say(KINDS.HEARTBEAT, []);
    if (this.#isAdvertised && this.#sent === this.#waiting.length) {
      this.link.say(KINDS.PROMISE, [this.#promise()]);
    }
  }

  // --- events ---

  // Let events gather that are published in one turn of the loop.
  #soon() {
    if (this.#isDue) return;
    this.#isDue = true;
    LATER(() => {
      this.#isDue = false;
      this.#send();
    });
  }

  #send() {
    while (this.#isAdvertised && this.#credit > 0 && this.#sent < this.#waiting.length) {
      const events = this.#next();
      const rows = events.map((event) => this.#row(event));
      const [head, columns] = write(this.#types.get(events[0].type), this.link.name, rows);
      this.#sent += events.length;
      this.#credit -= events.length;
      const isLast = this.#sent === this.#waiting.length;
      this.link.say(KINDS.PUBLISH, [[head], isLast ? this.#promise() : null, "broker"], columns);
    }
  }

  // The next events of one type, all with ids or all without.
  #next() {
    const first = this.#waiting[this.#sent];
    const most = Math.min(ROWS_MAX, this.#credit);
    let end = this.#sent;
    while (end < this.#waiting.length && end - this.#sent < most) {
      const { type, id } = this.#waiting[end];
      if (type !== first.type || (id === null) !== (first.id === null)) break;
      end += 1;
    }
    return this.#waiting.slice(this.#sent, end);
  }

  // A row of an event, which has its number and time from the first time that it is sent on.
  #row(event) {
    if (event.number === 0) event.number = this.#number += 1;
    if (event.time === null) event.time = max(now(), this.#promised);
    return { ...event, sequence: event.number };
  }

  #promise() {
    this.#promised = max(this.#promised, now() - this.disorderUs);
    return this.#promised;
  }

  #acknowledge(number) {
    let count = 0;
    while (count < this.#waiting.length) {
      const event = this.#waiting[count];
      if (event.number === 0 || event.number > number) break;
      event.resolve();
      count += 1;
    }
    this.#waiting.splice(0, count);
    this.#sent = Math.max(0, this.#sent - count);
    for (const resolve of this.#rooms.splice(0)) resolve();
  }

  #reject([code, runs, reason]) {
    for (const event of this.#waiting) {
      const isIn = ([first, last]) => Number(first) <= event.number && event.number <= Number(last);
      if (event.number && runs.some(isIn)) event.reject(new RexmqError(reason, code));
    }
  }

  #fail(error) {
    this.failure = error;
    this.settle.reject(error);
    for (const event of this.#waiting.splice(0)) event.reject(error);
    for (const resolve of this.#rooms.splice(0)) resolve();
    this.link.close();
  }
}

// A promise that is kept when an event is settled, whichever way.
function settled(event) {
  return new Promise((resolve) => {
    const { resolve: kept, reject: broken } = event;
    event.resolve = () => (kept(), resolve());
    event.reject = (error) => (broken(error), resolve());
  });
}

function microseconds(time) {
  if (time === null || typeof time === "bigint") return time;
  return BigInt(new Date(time).getTime()) * 1000n;
}

function now() {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000));
}

function max(one, other) {
  return one > other ? one : other;
}
