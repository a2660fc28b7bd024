import { answer } from "./kinds/answer.ts"
import { batch } from "./kinds/batch.ts"
import { concurrency } from "./kinds/concurrency.ts"
import { debounce } from "./kinds/debounce.ts"
import { deduplicate } from "./kinds/deduplicate.ts"
import { onFailure } from "./kinds/onFailure.ts"
import { rateLimit } from "./kinds/rateLimit.ts"
import { schedule } from "./kinds/schedule.ts"
import type { TriggerKind } from "./TriggerKind.ts"

/** What begins a run, then what lets it wait, in the order in which it applies, and what comes after it. */
export const triggerKinds: ReadonlyArray<TriggerKind> = [
  schedule,
  answer,
  deduplicate,
  debounce,
  batch,
  concurrency,
  rateLimit,
  onFailure
]

export const titleOf = (name: string): string => triggerKinds.find((kind) => kind.name === name)?.title ?? name
