// Ways to a broker: ZeroMQ (tcp://, ipc://), or a WebSocket of its page (ws://, wss://).
//
// A transport has `send(frames)`, gives the frames of each message as it is iterated over, and ends
// when it is `closed`.

const BUFFERED_MAX = 2 ** 20;
const PAUSE_MS = 5;

// Connect to an endpoint. `curve`: keys, as ZeroMQ takes them.
export async function open(endpoint, curve) {
  if (/^wss?:/.test(endpoint)) return new WebTransport(endpoint);
  const { Dealer } = await import("zeromq"); // which browsers do not have
  const socket = new Dealer({ linger: 0, reconnectInterval: -1, sendHighWaterMark: 0, ...curve });
  for (const end of ["disconnect", "close"]) {
    socket.events.on(end, () => socket.closed || socket.close());
  }
  socket.connect(endpoint);
  return socket;
}

class WebTransport {
  #messages = [];
  #wake = null;

  constructor(endpoint) {
    this.closed = false;
    this.socket = new WebSocket(endpoint);
    this.socket.binaryType = "arraybuffer";
    this.opened = new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onclose = () => {
        this.closed = true;
        this.#wake?.();
        reject(new Error(`${endpoint}: the link has ended`));
      };
    });
    this.opened.catch(() => {});
    this.socket.onerror = () => {}; // onclose follows
    this.socket.onmessage = ({ data }) => {
      this.#messages.push(framesOf(new Uint8Array(data)));
      this.#wake?.();
    };
  }

  async send(frames) {
    await this.opened;
    while (this.socket.bufferedAmount > BUFFERED_MAX && !this.closed) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    if (this.closed) throw new Error("the link has ended");
    this.socket.send(joined(frames.flatMap((frame) => [lengthOf(frame), frame])));
  }

  close() {
    this.closed = true;
    this.socket.close();
    this.#wake?.();
  }

  async *[Symbol.asyncIterator]() {
    while (true) {
      while (this.#messages.length) yield this.#messages.shift();
      if (this.closed) return;
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }
}

// Bytes, one after another.
export function joined(parts) {
  const bytes = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function lengthOf(frame) {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, frame.length, true);
  return bytes;
}

function framesOf(message) {
  const view = new DataView(message.buffer);
  const frames = [];
  for (let at = 0; at < message.length; ) {
    const begin = at + 4;
    at = begin + view.getUint32(at, true);
    frames.push(message.subarray(begin, at));
  }
  return frames;
}
