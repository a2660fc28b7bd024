import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { beginFailureRun } from "@tidegate/storage/workflows/FailureRuns"
import { metrics } from "@tidegate/telemetry/Metrics"

interface Needs {
  readonly workflowId: string
  readonly shardOf: (workflowId: string) => number
  /** The other workflow has a new run. */
  readonly wake: (workflowId: string) => Effect.Effect<void>
}

/** Begins the on-failure run of a run of the workflow that has failed. Repeated, it begins no other. */
export const makeFailureRuns = ({ shardOf, wake, workflowId }: Needs) =>
  Effect.fnUntraced(function* (team_id: string, run_id: string): Effect.fn.Return<void, SqlError.SqlError, Database> {
    const told = yield* beginFailureRun({ team_id, workflow_id: workflowId, run_id, shardOf })
    if (told === null) return
    metrics.workflowFailureRuns.at(told.run_id === null ? "refused" : "begun").add()
    if (told.run_id === null) {
      const { error_code, workflow_id } = told
      yield* Effect.logWarning("a run has failed, and its on-failure workflow could not begin", {
        team_id,
        workflow_id: workflowId,
        run_id,
        on_failure_workflow_id: workflow_id,
        error_code
      })
      return
    }
    // If it is lost, the poller finds the run.
    yield* Effect.forkDetach(wake(told.workflow_id))
  })
