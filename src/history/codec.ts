// history/codec.ts — the one codec that all providers share: text as the reference writes it, values as we speak of them.
//
//   1. What is encoded decodes to an equal value; what the reference wrote encodes to the same text again.
//   2. Decoding text of any origin yields a well-typed value or a CodecError, never another exception.

export { decodeErrorDetails, encodeErrorDetails } from "./error-details-codec.js";
export { decodeEvent, encodeEvent } from "./event-codec.js";
export { decodeWorkItem, encodeWorkItem } from "./work-item-codec.js";
