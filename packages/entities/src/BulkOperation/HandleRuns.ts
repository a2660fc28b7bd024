import { Cause, Effect } from "effect"
import { GatewayError, statusOf } from "@tidegate/model/GatewayError"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import type { HandledRuns, RunBatch, RunTarget } from "@tidegate/storage/bulk/RunTargets"
import { WorkflowEntity } from "../Workflow/WorkflowProtocol.ts"

/** How many actors are asked at once. The actor of a workflow handles its commands one after the other. */
const atOnce = 16
/** How long an actor may take. It is longer than a fail-over of its shard takes. */
const patience = "15 seconds"

type Handled = keyof HandledRuns

const asHandled = <A, E, R>(asking: Effect.Effect<A, E, R>): Effect.Effect<Handled, never, R> =>
  asking.pipe(
    Effect.as<Handled>("done"),
    // An actor that cannot be reached now, or could not store the change: the next step repeats it.
    Effect.catch((error) =>
      Effect.succeed<Handled>(error instanceof GatewayError && statusOf[error.code] !== 503 ? "refused" : "left")
    ),
    // An actor that loses its shard is interrupted, and so is its answer.
    Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.succeed<Handled>("left")),
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.succeed<Handled>("left") })
  )

/** Returns what asks the workflows' actors to handle runs of an operation. A repetition changes nothing. */
export const handleRuns = Effect.map(WorkflowEntity.client, (client) =>
  Effect.fnUntraced(function* (operationId: string, { runs, team_id, type }: RunBatch) {
    const handle = ({ error_step_id, id, workflow_id, ...run }: RunTarget): Effect.Effect<Handled> => {
      if (workflow_id === null) return Effect.succeed("refused")
      const owner = client(workflow_id)
      if (type === "workflow_run_bulk_cancel") return asHandled(owner.CancelRun({ team_id, run_id: id }))
      const retry_id = derivedId(prefixes.stepRetry, operationId, id)
      // A process that has died has retried it; it may have ended since, perhaps at another step.
      if (run.retry_id === retry_id) return Effect.succeed("done")
      if (error_step_id === null) return Effect.succeed("refused")
      return asHandled(owner.RetryStep({ team_id, run_id: id, step_id: error_step_id, retry_id }))
    }
    const handled = yield* Effect.forEach(runs, handle, { concurrency: atOnce })
    const those = (how: Handled) => runs.flatMap(({ id }, n) => (handled[n] === how ? [id] : []))
    return { done: those("done"), refused: those("refused"), left: those("left") } satisfies HandledRuns
  })
)
