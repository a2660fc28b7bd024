import { Clock, Effect } from "effect"
import type { Database } from "@tidegate/storage/Database"
import { newId, prefixes } from "@tidegate/model/Ids"
import { readUnended } from "@tidegate/storage/workflows/RunEnding"
import { type Moved, RunJournal, type RunTransition } from "@tidegate/storage/workflows/RunJournal"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { GivenUp } from "@tidegate/workflows/GivenUp"
import { runTelemetry } from "./RunTelemetry.ts"

/** How long (ms) a run is left alone when even its end cannot be stored. */
const againAfter = 3_600_000

/** `as`: how the run ends, if not as cancelled. */
export interface GivenUpAs {
  readonly fromFirst?: boolean
  readonly as?: { readonly status: "succeeded"; readonly outcome: "duplicate" | "superseded" | "batched" } | null
}

/**
 * Ends a run that cannot continue from its stored state. Otherwise it would be read again and again, and delay other runs. The
 * number of stored journal entries in `run` is the fence: if another process has the run meanwhile, that process keeps it. The
 * steps end as their stored progress says. If the database refuses this end, too, the run stays as it is and is put off: one
 * attempt an hour costs little, and its log line repeats until somebody repairs the stored data.
 */
export const giveUp = Effect.fnUntraced(function* (
  run: Pick<DueRun, "id" | "team_id" | "parts" | "attempts">,
  error: { readonly code: string; readonly message: string },
  { as = null, fromFirst = false }: GivenUpAs = {}
): Effect.fn.Return<Moved, never, RunJournal | Database> {
  const journal = yield* RunJournal
  const now = yield* Clock.currentTimeMillis
  const steps = new GivenUp()
  const read = readUnended(run, (part) => steps.take(part))
  const stored = yield* Effect.catch(read, (error) =>
    Effect.as(
      Effect.logWarning("a run could not be given up; the poller comes back to it", { run_id: run.id, error }),
      "failed" as const
    )
  )
  if (stored === "failed") return stored
  if (stored === null) return "superseded"
  const startedAt = stored.started_at?.getTime() ?? null
  const { count, progress } = steps.end({ error, stepsCount: stored.steps_count, startedAt, now, fromFirst })
  const ending = as ?? ({ status: "failed", outcome: "cancelled" } as const)
  const transition: RunTransition = {
    id: run.id,
    teamId: run.team_id,
    part: run.parts + 1,
    partId: newId(prefixes.workflowPart, now),
    at: now,
    ...ending,
    attempts: run.attempts,
    ...count,
    running: 0,
    kept: stored.kept,
    error: { ...error, stepId: null },
    startedAt,
    finishedAt: now,
    dueAt: null,
    moves: false,
    carried: null,
    steps: JSON.stringify(as === null ? progress : { ...progress, run: { ...progress.run, ...as } }),
    resources: null,
    outputs: null,
    previews: null
  }
  const moved = yield* journal.move(transition)
  if (moved === "stored") {
    const { request_id, source_id, version, workflow_id } = stored
    ;(yield* runTelemetry).ended({ workflow_id, run: { ...run, request_id, source_id, version } }, transition)
  }
  if (moved === "refused") yield* journal.putOff(run.id, now + againAfter)
  return moved
})
