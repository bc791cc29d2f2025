// duroxide-ts/testing — for users' tests.

export { VirtualClock } from "./virtual-clock.js";
