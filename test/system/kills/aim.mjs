// kills/aim.mjs — lets a process die by SIGKILL at a chosen moment of a call to its store.
//
//   before: the call is not made. during: it is on its way, for so many milliseconds. after: the store has answered, and
//   the runtime has not heard of it.

import { ProviderWrapper } from "duroxide-ts/provider";

/** Whatever a runtime holds, or is about to hold, goes through these. */
export const OPERATIONS = ["fetchOrchestrationItem", "ackOrchestrationItem", "fetchWorkItem", "ackWorkItem"];
export const MOMENTS = ["before", "during", "after"];
const LONGEST_DURING_MS = 5;

/** One of all aims. */
export function randomAim(random) {
  const among = (list) => list[Math.floor(random() * list.length)];
  return { operation: among(OPERATIONS), moment: among(MOMENTS), duringMs: random() * LONGEST_DURING_MS };
}

/** `takeAim(operation)`: the aim that is at the call that begins now, or null. */
export class AimedProvider extends ProviderWrapper {
  #takeAim;

  constructor(inner, takeAim) {
    super(inner);
    this.#takeAim = takeAim;
  }

  around(operation, call) {
    const aim = this.#takeAim(operation);
    return aim === null ? call() : dieAt(aim, call);
  }
}

async function dieAt({ moment, duringMs }, call) {
  if (moment === "before") die();
  if (moment === "during") setTimeout(die, duringMs);
  const answer = await call();
  if (moment === "after" && answer !== null) die(); // A fetch that found nothing is not worth a life.
  return answer;
}

function die() {
  process.kill(process.pid, "SIGKILL");
}
