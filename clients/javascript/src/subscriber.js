// Subscribers: sinks of events. docs/protocol.md, section 5.

import { Columns, read } from "./columns.js";
import { KINDS, Link } from "./link.js";

export class Subscriber {
  #filters;
  #events = [];
  #wake = null;
  #had = 0; // events since credit was given last
  #isConfirmed = false;
  #wasConfirmed = false;

  // `filters`: "Temp(value > 45)", or several. `durable`: the name of a durable sink, whose events
  // are to be acknowledged. `group`: each event of the filter goes to one of the subscribers of that
  // name, with `by` those of an equal value of an attribute to the same one. `credit`: events that
  // may be on their way.
  constructor(endpoints, filters, { durable = "", group = "", by = "", credit = 1000, ...more } = {}) {
    const { whenFull, limit, ...options } = more;
    this.#filters = [filters].flat();
    this.durable = durable;
    this.sharing = group ? [0, 0, group, by] : []; // a broker before groups knows no such fields
    this.credit = credit;
    this.whenFull = whenFull ?? (durable ? "block" : "drop-oldest");
    this.limit = limit ?? 65536;
    this.dropped = 0;
    this.link = new Link(this, endpoints, { ...options, name: options.name ?? "" });
    this.ready = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
    this.ready.catch(() => {});
  }

  // The next event; undefined once the subscriber is closed.
  async next() {
    while (!this.#events.length) {
      if (this.failure) throw this.failure;
      if (this.isClosed) return undefined;
      await new Promise((resolve) => (this.#wake = resolve));
    }
    const event = this.#events.shift();
    this.#had += 1;
    if (this.#had >= this.credit / 2) this.#giveCredit();
    return event;
  }

  async *[Symbol.asyncIterator]() {
    for (let event = await this.next(); event !== undefined; event = await this.next()) yield event;
  }

  // Say that an event of a durable sink is dealt with: it does not come again.
  acknowledge(event) {
    const number = BigInt(event.number);
    if (number) this.link.say(KINDS.DEALT_WITH, [number, number]);
  }

  // Give an event of a durable sink back: it comes again, marked, after so many seconds. Given
  // back `deliveriesMax` times (0: any number), it is a dead letter.
  nack(event, { delayS = 0, deliveriesMax = 0 } = {}) {
    const number = BigInt(event.number);
    if (number) this.link.say(KINDS.NACK, [number, number, delayS, deliveriesMax]);
  }

  async close() {
    this.isClosed = true;
    this.#wake?.();
    await this.link.close();
  }

  // --- what the link says ---

  async onReady() {
    this.#isConfirmed = false;
    this.#had = 0;
    this.#events = this.durable ? [] : this.#events; // they come again
    try {
      const own = [this.whenFull, this.limit, this.#wasConfirmed, this.durable, ...this.sharing];
      const asked = this.#filters.map((filter, number) =>
        this.link.ask(KINDS.SUBSCRIBE, number, filter, ...own),
      );
      await Promise.all(asked);
    } catch (error) {
      if (!["silent", "elsewhere", "no-store"].includes(error.code) || !this.#wasConfirmed) {
        if (error.code !== "silent") this.onFailure(error);
      } else if (error.code !== "silent") {
        this.link.socket?.close(); // the sink is at another broker by now
      }
      return;
    }
    this.#isConfirmed = this.#wasConfirmed = true;
    this.link.say(KINDS.CREDIT, [this.credit]);
    this.settle.resolve();
  }

  onMessage(kind, fields, columns) {
    if (kind !== KINDS.DELIVERY) return;
    const [batches, , ordered, dropped, late, last, again] = fields;
    const rest = new Columns(columns);
    const events = batches.flatMap((batch) => read(batch, rest));
    const order = ordered ? Array.from(rest.take(BigInt64Array, events.length), Number) : null;
    this.dropped += Number(dropped);
    const first = Number(last) - events.length + 1;
    (order ?? [...events.keys()]).forEach((place, at) => {
      const number = Number(last) && first + at;
      this.#events.push({ ...events[place], number, again, late });
    });
    this.#wake?.();
  }

  onFailure(error) {
    this.failure = error;
    this.settle.reject(error);
    this.#wake?.();
    this.link.close();
  }

  idle() {
    this.link.say(KINDS.HEARTBEAT, []);
  }

  #giveCredit() {
    if (!this.#isConfirmed) return;
    this.link.say(KINDS.CREDIT, [this.#had]);
    this.#had = 0;
  }
}
