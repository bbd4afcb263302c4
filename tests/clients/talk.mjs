// What the tests have the JavaScript client do: node talk.mjs publish|subscribe ENDPOINT ...

import { createInterface } from "node:readline";
import { Publisher, Subscriber } from "../../clients/javascript/src/index.js";

const [what, endpoint, ...rest] = process.argv.slice(2);
const keys = process.env.KEYS ? JSON.parse(process.env.KEYS) : null;
const sharing = process.env.SHARING ? JSON.parse(process.env.SHARING) : {};
const plain = (_, value) => (typeof value === "bigint" ? String(value) : value);

// Each line of standard input is an event; says how many are acknowledged, and what is refused.
async function publish(name, types) {
  const publisher = new Publisher(endpoint, { name, types: JSON.parse(types), disorderS: 3600, keys });
  await publisher.ready;
  console.log("ready");
  const receipts = [];
  for await (const line of createInterface({ input: process.stdin })) {
    const { type, data, ...named } = JSON.parse(line);
    await publisher.room();
    try {
      receipts.push(publisher.publish(type, data, named));
    } catch (error) {
      console.log(error.message);
    }
  }
  const outcomes = await Promise.allSettled(receipts);
  for (const { reason } of outcomes) if (reason) console.log(reason.code);
  console.log(outcomes.filter(({ status }) => status === "fulfilled").length);
  await publisher.close();
}

// Writes so many events, each a line, and acknowledges them.
async function subscribe(count, durable, ...filters) {
  const subscriber = new Subscriber(endpoint, filters, { durable, credit: 20, keys, ...sharing });
  await subscriber.ready;
  console.log("ready");
  for (let number = 0; number < Number(count); number += 1) {
    const event = await subscriber.next();
    console.log(JSON.stringify(event, plain));
    subscriber.acknowledge(event);
  }
  await subscriber.close();
}

await { publish, subscribe }[what](...rest);
