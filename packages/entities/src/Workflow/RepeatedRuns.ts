import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { WorkflowDeduplicate } from "@tidegate/model/WorkflowTriggers"
import type { Database } from "@tidegate/storage/Database"
import { claimKeys, type KeyedRun } from "@tidegate/storage/workflows/RunKeys"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { keysOf } from "./KeysOf.ts"

const nothing: ReadonlyMap<string, string> = new Map()

/**
 * Runs that have not begun and repeat another one, with the id of that. A run without a value at the key repeats none. The key is
 * stored before its run begins: when the process dies in between, the next one finds that the run has its own key.
 */
export const repeatedRuns = Effect.fnUntraced(function* (
  workflowId: string,
  due: ReadonlyArray<DueRun>,
  deduplicate: WorkflowDeduplicate | null
): Effect.fn.Return<ReadonlyMap<string, string>, SqlError.SqlError, Database> {
  if (deduplicate === null) return nothing
  const repeated = new Map<string, string>()
  const byKey = new Map<string, KeyedRun>()
  const others: Array<KeyedRun> = []
  const fresh = due.filter(({ parts }) => parts === 0)
  const keys = yield* keysOf(fresh, deduplicate.key)
  for (const run of fresh) {
    const of = keys.get(run.id)
    if (of === undefined) continue
    const keyed = { id: run.id, team_id: run.team_id, key: of, created_at: run.created_at }
    if (byKey.has(of)) others.push(keyed)
    else byKey.set(of, keyed)
  }
  // Further runs with a key of this batch are asked about one by one, after the first one has its answer.
  for (const batch of [[...byKey.values()], ...others.map((run) => [run])]) {
    const owners = yield* claimKeys(workflowId, deduplicate.window_ms, batch)
    for (const { id, key } of batch) {
      const owner = owners.get(key)
      if (owner !== undefined && owner !== id) repeated.set(id, owner)
    }
  }
  return repeated
})
