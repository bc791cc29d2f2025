// The types of audit-verdict.mjs, for tests in TypeScript.

export interface AuditVerdict {
  readonly kind: "clean" | "vulnerable" | "unanswered" | "broken";
  /** What was found, or why nothing could be. */
  readonly message: string;
}

/** `output`: what `npm audit --json` has printed. */
export function auditVerdict(output: string): AuditVerdict;
