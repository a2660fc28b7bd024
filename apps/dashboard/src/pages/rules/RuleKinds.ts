import { deduplicateRule } from "./DeduplicateRule.tsx"
import { delayRule } from "./DelayRule.tsx"
import { filterRule } from "./FilterRule.tsx"
import { retryRule } from "./RetryRule.tsx"
import type { RuleKind } from "./Rule.ts"
import { transformRule } from "./TransformRule.tsx"

/** In the order in which the gateway applies them. */
export const ruleKinds = [
  deduplicateRule,
  transformRule,
  filterRule,
  delayRule,
  retryRule
] as unknown as ReadonlyArray<RuleKind>
