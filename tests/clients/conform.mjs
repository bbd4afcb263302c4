// A source, or a durable sink, as `rexmq conformance` wants it: node conform.mjs source|sink ENDPOINT

import { Publisher, Subscriber } from "../../clients/javascript/src/index.js";

const [what, endpoint] = process.argv.slice(2);

async function source() {
  const types = { Temp: { area: "string", value: "float" } };
  const publisher = new Publisher(endpoint, { name: "conforming", types });
  await publisher.ready;
  const receipts = [];
  for (let number = 0; number < 12; number += 1) {
    await publisher.room();
    receipts.push(publisher.publish("Temp", { area: "a1", value: number + 0.5 }));
  }
  await Promise.all(receipts);
  await publisher.close();
}

async function sink() {
  const subscriber = new Subscriber(endpoint, ["All"], { durable: "conforming", credit: 10 });
  await subscriber.ready;
  const had = new Set(); // what was not acknowledged comes again
  while (had.size < 20) {
    const event = await subscriber.next();
    subscriber.acknowledge(event);
    had.add(event.number);
  }
  await subscriber.close();
}

await { source, sink }[what]();
