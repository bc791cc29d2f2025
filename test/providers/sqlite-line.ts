// The other end of `ChildProgram.send`, for the programs.

import { createInterface } from "node:readline";

export async function nextLine(): Promise<string> {
  for await (const line of createInterface(process.stdin)) return line;
  throw new Error("the test has hung up");
}
