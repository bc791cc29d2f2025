// duroxide-ts/provider-tests — proves a provider: the validation suite, for any test runner or none.

export type { CaseContext, CaseStore } from "./case-context.js";
export { CATEGORIES } from "./cases/index.js";
export { BrokenPromiseError } from "./checks.js";
export { describeWith, type Runner } from "./describe-with.js";
export type { Category, ProviderCase, ProviderFactory, TestStore } from "./provider-case.js";
export { formatReport } from "./report.js";
export * from "./stress/index.js";
export {
  type CaseOutcome,
  type CaseResult,
  runCase,
  type ValidateOptions,
  type ValidationReport,
  validate,
} from "./validate.js";
