// runtime/parent-route.ts — where the answer to a parent goes: to the very execution that asked.

import { type ErrorDetails, orchestrationFailed } from "../history/error-details.js";
import type { OrchestratorItem, ParentLink } from "../history/work-item.js";
import type { Provider } from "../provider/provider.js";

/** A link that names the parent's execution. */
export type ParentRoute = Required<ParentLink>;

export type ChildEnding =
  | { readonly kind: "completed"; readonly output: string }
  | { readonly kind: "failed"; readonly details: ErrorDetails };

/** Old data does not name the parent's execution; then its current one is asked for. Null: the parent is gone. */
export async function routeToParent(provider: Provider, link: ParentLink): Promise<ParentRoute | null> {
  const { parentInstance, parentId, parentExecutionId } = link;
  if (parentExecutionId !== undefined) return { parentInstance, parentId, parentExecutionId };
  const parent = await provider.getInstanceStatus(parentInstance);
  return parent === null ? null : { parentInstance, parentId, parentExecutionId: parent.executionId };
}

/** The message that tells a parent how its child ended. */
export function answerTo(parent: ParentRoute, ending: ChildEnding): OrchestratorItem {
  return ending.kind === "completed"
    ? { type: "SubOrchCompleted", ...parent, result: ending.output }
    : { type: "SubOrchFailed", ...parent, details: ending.details };
}

/** Tells parents that the id they chose for a child is taken. */
export async function answerCollisions(
  provider: Provider,
  instance: string,
  parents: readonly ParentLink[],
): Promise<OrchestratorItem[]> {
  if (parents.length === 0) return [];
  const details = orchestrationFailed(
    `Instance '${instance}' already exists. Choose another instanceId for the sub-orchestration.`,
  );
  const routes = await Promise.all(parents.map((parent) => routeToParent(provider, parent)));
  return routes.flatMap((route) => (route === null ? [] : [answerTo(route, { kind: "failed", details })]));
}
