export type Kind = "int" | "float" | "bool" | "string" | "int?" | "float?" | "bool?" | "string?";
export type Value = number | bigint | boolean | string | null;
export type Data = Record<string, Value>;

export interface Keys {
  publicKey: string;
  secretKey: string;
  serverKey: string;
}

export interface Options {
  /** Seconds after which each side says something. */
  heartbeatS?: number;
  /** CURVE keys in Z85, for brokers with keys. */
  keys?: Keys | null;
}

/** What a broker refuses, with its code, or a link that has ended (`silent`). */
export class RexmqError extends Error {
  readonly code: string;
}

export interface Named {
  /** A Date, or microseconds since the epoch; left out: the event is stamped. */
  time?: Date | string | bigint | null;
  id?: string | null;
}

/** Endpoints: `tcp://HOST:7461`, or `ws://HOST:9464/ws` of a broker's page, in browsers as well. */
export class Publisher {
  constructor(
    endpoints: string | string[],
    options: Options & {
      name: string;
      types: Record<string, Record<string, Kind>>;
      disorderS?: number;
      unacknowledgedMax?: number;
    },
  );
  /** Kept once the broker knows the types. */
  readonly ready: Promise<void>;
  /** The promise is kept once the broker has the event. */
  publish(type: string, data: Data, named?: Named): Promise<void>;
  publishBatch(events: Iterable<{ type: string; data: Data } & Named>): Promise<void>;
  /** Wait until another event may be published. */
  room(): Promise<void>;
  close(): Promise<void>;
}

export interface Event {
  type: string;
  /** Microseconds since the epoch. */
  time: bigint;
  source: string;
  sequence: number | bigint;
  id: string;
  data: Data;
  /** The events that a composite event was found from. */
  cause?: { source: string; id: string }[];
  /** Its number at a durable sink; 0 at another. */
  number: number;
  /** Whether the durable sink has given it before. */
  again: boolean;
  late: boolean;
}

export class Subscriber implements AsyncIterable<Event> {
  constructor(
    endpoints: string | string[],
    filters: string | string[],
    options?: Options & {
      name?: string;
      durable?: string;
      /** Share the events of the one filter with the other subscribers of this name. */
      group?: string;
      /** Events with equal values of this attribute go to the same one. */
      by?: string;
      credit?: number;
      whenFull?: "block" | "drop-oldest" | "disconnect";
      limit?: number;
    },
  );
  /** Kept once the subscriptions are in force. */
  readonly ready: Promise<void>;
  /** Events that were dropped because the queue was full. */
  readonly dropped: number;
  /** The next event; undefined once the subscriber is closed. */
  next(): Promise<Event | undefined>;
  /** Say that an event of a durable sink is dealt with. */
  acknowledge(event: Event): void;
  /** Give an event of a durable sink back: it comes again, or is a dead letter. */
  nack(event: Event, how?: { delayS?: number; deliveriesMax?: number }): void;
  close(): Promise<void>;
  [Symbol.asyncIterator](): AsyncIterator<Event>;
}
