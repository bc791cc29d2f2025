// engine/nondeterminism.ts — the engine's own way out of a turn: code and history do not agree, or history is broken.

/** Caught inside the engine and recorded as a configuration failure; never reaches user code. */
export class NondeterminismError extends Error {
  override readonly name = "NondeterminismError";
}
