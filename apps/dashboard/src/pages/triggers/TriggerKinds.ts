import { answer } from "./kinds/answer.ts"
import { batch } from "./kinds/batch.ts"
import { concurrency } from "./kinds/concurrency.ts"
import { debounce } from "./kinds/debounce.ts"
import { deduplicate } from "./kinds/deduplicate.ts"
import { onFailure } from "./kinds/onFailure.ts"
import { priority } from "./kinds/priority.ts"
import { rateLimit } from "./kinds/rateLimit.ts"
import { schedule } from "./kinds/schedule.ts"
import type { TriggerKind, TriggerName } from "./TriggerKind.ts"

/**
 * First the triggers that begin a run, then those that make it wait, in the order in which they apply, then what follows a run. A setting without its
 * kind does not compile: the form writes all settings as a whole, so it would remove that one.
 */
const byName = {
  schedule,
  answer,
  deduplicate,
  debounce,
  batch,
  concurrency,
  rate_limit: rateLimit,
  priority,
  on_failure: onFailure
} satisfies Record<TriggerName, TriggerKind>

export const triggerKinds: ReadonlyArray<TriggerKind> = Object.values(byName)

export const titleOf = (name: string): string => triggerKinds.find((kind) => kind.name === name)?.title ?? name
