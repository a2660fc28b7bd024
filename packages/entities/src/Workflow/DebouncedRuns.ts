import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { WorkflowDebounce } from "@tidegate/model/WorkflowTriggers"
import type { Database } from "@tidegate/storage/Database"
import { maxWindows, windowed } from "@tidegate/storage/workflows/RunWindows"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { keysOf } from "./KeysOf.ts"

export const tooManyKeys = {
  code: "TOO_MANY_WAITING",
  message: `runs of ${maxWindows} keys of the workflow wait for later ones`
}

export interface DebouncedRuns {
  readonly begin: ReadonlyArray<DueRun>
  /** Runs that a later one has superseded, with its id. Some may be due later only. */
  readonly superseded: ReadonlyMap<string, string>
  readonly refused: ReadonlySet<string>
  /** When the next run is due that waits now (Unix ms); Infinity: none waits. */
  readonly nextAt: number
}

/**
 * Of runs that want to begin, those that no later one may supersede any more. Runs that have begun, retried ones,
 * and those that carry out a batch are no concern.
 */
export const debouncedRuns = Effect.fnUntraced(function* (
  workflowId: string,
  due: ReadonlyArray<DueRun>,
  debounce: WorkflowDebounce | null
): Effect.fn.Return<DebouncedRuns, SqlError.SqlError, Database> {
  const fresh = debounce === null ? [] : due.filter(({ batch_id, parts }) => parts === 0 && batch_id === null)
  const keys = debounce?.key == null ? null : yield* keysOf(fresh, debounce.key)
  const runs = fresh.flatMap(({ created_at, id }) => {
    const key = keys === null ? "" : keys.get(id)
    return key === undefined ? [] : [{ id, key, createdAt: created_at.getTime() }]
  })
  if (debounce === null || runs.length === 0) {
    return { begin: due, superseded: new Map(), refused: new Set(), nextAt: Infinity }
  }
  const { begin, nextAt, refused, superseded } = yield* windowed({
    workflowId,
    teamId: due[0]!.team_id,
    runs: runs.toSorted((a, b) => a.createdAt - b.createdAt),
    times: debounce,
    now: yield* Clock.currentTimeMillis
  })
  const waiting = new Set(runs.map(({ id }) => id))
  return { begin: due.filter(({ id }) => !waiting.has(id) || begin.has(id)), superseded, refused, nextAt }
})
