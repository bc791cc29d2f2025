// history/failure-size.ts — how long a recorded failure may be. A message that is too long is cut, not refused: its
// beginning says what went wrong, and a failure in place of the failure would not.

import { unreachable } from "../errors.js";
import type { ErrorDetails } from "./error-details.js";
import { byteLength } from "./limits.js";

/** What is no longer than this stays whole, whatever the limit: so that what was cut is not cut again. */
const ALWAYS_KEPT_BYTES = 16_384;
/** Of a message that is cut. With what is said of the rest, and three bytes for each, less than what is always kept. */
const KEPT_CHARACTERS = 4_096;

/** The text by which a failure may grow. */
export function failureText(details: ErrorDetails): string {
  if (details.category !== "application" || details.kind.type !== "Cancelled") return details.message ?? "";
  return details.kind.reason;
}

/** The same failure, with no text longer than allowed. */
export function cutFailure(details: ErrorDetails, maxBytes: number): ErrorDetails {
  const cut = (text: string): string => cutMessage(text, maxBytes);
  switch (details.category) {
    case "infrastructure":
      return { ...details, message: cut(details.message) };
    case "configuration":
      return { ...details, message: details.message === null ? null : cut(details.message) };
    case "application":
      return details.kind.type === "Cancelled"
        ? { ...details, kind: { ...details.kind, reason: cut(details.kind.reason) } }
        : { ...details, message: cut(details.message) };
    case "poison": {
      const { messageType } = details;
      const cutType =
        messageType.type === "FailedDeserialization" ? { ...messageType, error: cut(messageType.error) } : messageType;
      return { ...details, messageType: cutType, message: cut(details.message) };
    }
    default:
      return unreachable(details);
  }
}

/** The message, or its beginning and how long it was. */
export function cutMessage(message: string, maxBytes: number): string {
  const most = Math.max(maxBytes, ALWAYS_KEPT_BYTES);
  const bytes = byteLength(message);
  if (bytes <= most) return message;
  const beginning = message.slice(0, KEPT_CHARACTERS).replace(/[\uD800-\uDBFF]$/, ""); // Not half a character.
  return `${beginning}… (cut: ${bytes} bytes exceeds limit (${most} bytes))`;
}
