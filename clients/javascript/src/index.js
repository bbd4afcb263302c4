export { RexmqError } from "./link.js";
export { Publisher } from "./publisher.js";
export { Subscriber } from "./subscriber.js";
