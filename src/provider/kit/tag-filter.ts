// provider/kit/tag-filter.ts — which activities a filter of tags lets through.

import { unreachable } from "../../errors.js";
import type { TagFilter } from "../provider.js";

/** Whether whoever fetches with this filter takes work of this tag. Undefined: work without one. */
export function letsThrough(filter: TagFilter, tag: string | undefined): boolean {
  switch (filter.kind) {
    case "default-only":
      return tag === undefined;
    case "tags":
      return tag !== undefined && filter.tags.includes(tag);
    case "default-and":
      return tag === undefined || filter.tags.includes(tag);
    case "any":
      return true;
    case "none":
      return false;
    default:
      return unreachable(filter);
  }
}
