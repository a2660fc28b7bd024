import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import { storedHeaders } from "@tidegate/model/Message"
import type { WorkflowBatch } from "@tidegate/model/WorkflowTriggers"
import { inputBytes } from "@tidegate/storage/workflows/BatchInputs"
import type { Database } from "@tidegate/storage/Database"
import { gathered } from "@tidegate/storage/workflows/RunBatches"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { payloadGone } from "@tidegate/storage/Tables"
import { Loops } from "../Loops.ts"
import { keysOf } from "./KeysOf.ts"

export interface BatchedRuns {
  /** Those whose batch has closed name it. */
  readonly begin: ReadonlyArray<DueRun>
  /** Runs that another one carries out, with its id. */
  readonly batched: ReadonlyMap<string, string>
  readonly refused: ReadonlySet<string>
  /** Whether others are due now. */
  readonly others: boolean
  /** When the next batch closes that is open now (Unix ms); Infinity: none is. */
  readonly nextAt: number
}

/**
 * Of runs that want to begin, those whose batch has closed. Runs that have begun, and retried ones, are no concern. Requests that have
 * left the gateway a different number of times are not in one batch: what its run sends is as deep in their chain as all of them.
 */
export const batchedRuns = Effect.fnUntraced(function* (
  workflowId: string,
  due: ReadonlyArray<DueRun>,
  batch: WorkflowBatch | null
): Effect.fn.Return<BatchedRuns, SqlError.SqlError, Database> {
  const fresh = batch === null ? [] : due.filter(({ parts }) => parts === 0)
  if (batch === null || fresh.length === 0)
    return { begin: due, batched: new Map(), refused: new Set(), others: false, nextAt: Infinity }
  const loops = yield* Loops
  const keys = batch.key === null ? null : yield* keysOf(fresh, batch.key)
  const keyOf = (run: DueRun): string | null => {
    const key = keys === null ? "" : keys.get(run.id)
    if (key === undefined || run.headers === payloadGone) return null
    const depth = loops.depthOf(storedHeaders(run), run.team_id)
    return depth === "" ? key : `${key} ${depth}`
  }
  const runs = fresh.map((run) => ({
    id: run.id,
    key: keyOf(run),
    createdAt: run.created_at.getTime(),
    bytes: inputBytes(run),
    isFirst: run.batch_id !== null,
    requestId: run.request_id
  }))
  const { batched, begin, nextAt, others, refused } = yield* gathered({
    workflowId,
    teamId: due[0]!.team_id,
    runs: runs.toSorted((a, b) => a.createdAt - b.createdAt),
    limits: batch,
    now: yield* Clock.currentTimeMillis
  })
  return {
    begin: due.flatMap((run) => {
      if (run.parts > 0) return [run]
      return begin.has(run.id) ? [{ ...run, batch_id: run.batch_id ?? run.id }] : []
    }),
    batched,
    refused,
    others,
    nextAt
  }
})
