import { Context, Effect, Layer, type Scope } from "effect"
import { isTransient, JournalSql } from "../Database.ts"
import { addingUp } from "../journal/Counting.ts"
import { GroupCommit } from "../journal/GroupCommit.ts"
import { committed } from "../journal/JournalTelemetry.ts"
import { refusable } from "../journal/Refusable.ts"
import { runCommit, type RunTransition } from "../journal/RunStatement.ts"
import { withPartitions } from "../retention/Partitions.ts"

export type { RunTransition } from "../journal/RunStatement.ts"

/**
 * The result of a transition. `stored`: it is committed. `superseded`: another process has continued the run, or it is gone;
 * nothing was written. `refused`: the database refuses this transition only, and would refuse it again; logged with its cause.
 * `failed`: the result is unknown; the poller finds the run as it is stored.
 */
export type Moved = "stored" | "superseded" | "refused" | "failed"

/**
 * After a commit of so many transitions, the next ones gather for a few milliseconds: the steps of many runs end one shortly after the other,
 * and a commit for a few of them costs as much as ten transitions in it. With fewer runs, nothing waits.
 */
const gathering = { from: 8, ms: 3 } as const

interface Item {
  readonly transition: RunTransition
  readonly bytes: number
  readonly done: (moved: Moved) => void
}

/** The only writer of runs, one per process: gathered transitions are committed in one statement. */
export class RunJournal extends Context.Service<
  RunJournal,
  {
    /** Callers limit how much they pass at once. */
    readonly move: (transition: RunTransition) => Effect.Effect<Moved>
    /**
     * No process continues the run before `until` (Unix ms). When storing that fails, the run stays due, and the poller brings it
     * back.
     */
    readonly putOff: (runId: string, until: number) => Effect.Effect<void>
  }
>()("@tidegate/storage/RunJournal") {
  static readonly layer: Layer.Layer<RunJournal, never, JournalSql> = Layer.effect(
    RunJournal,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* JournalSql
  const run = Effect.runForkWith(yield* Effect.context<Scope.Scope>())

  const counted = yield* addingUp

  const answer = (items: ReadonlyArray<Item>, moved: Moved): Effect.Effect<void> =>
    Effect.sync(() => {
      for (const { done } of items) done(moved)
    })

  const commit = (items: ReadonlyArray<Item>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { parameters, statement } = runCommit(items.map(({ transition }) => transition))
      return Effect.map(sql.unsafe<{ id: string }>(statement, parameters), (rows) => {
        const stored = new Set(rows.map(({ id }) => id))
        counted(rows.length)
        for (const { done, transition } of items) done(stored.has(transition.id) ? "stored" : "superseded")
      })
    }).pipe(
      refusable,
      withPartitions(sql),
      Effect.catch((error) => {
        if (isTransient(error)) {
          return Effect.andThen(
            Effect.logWarning("runs could not be stored; the poller finds them again", { runs: items.length, error }),
            answer(items, "failed")
          )
        }
        if (items.length > 1) {
          // One that the database refuses must not fail the others of its batch.
          const half = items.length >> 1
          return Effect.andThen(commit(items.slice(0, half)), commit(items.slice(half)))
        }
        const { id: run_id, part } = items[0]!.transition
        return Effect.andThen(
          Effect.logError("a run could not be stored: the database refuses it", { run_id, part, error }),
          answer(items, "refused")
        )
      })
    )

  const measure = committed("run")
  let lastCommit = 0
  const transitions = new GroupCommit<Item>({
    committed: (items, bytes, seconds) => {
      lastCommit = items
      measure(items, bytes, seconds)
    },
    commit,
    patienceMs: gathering.ms,
    concurrency: 2,
    maxRows: 400,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 24,
    keyOf: ({ transition }) => transition.teamId,
    sizeOf: ({ bytes }) => bytes,
    run
  })

  return RunJournal.of({
    move: (transition) =>
      Effect.callback<Moved>((resume) => {
        const { carried, outputs, previews, steps } = transition
        const bytes = 512 + steps.length + (carried?.length ?? 0) + (outputs?.length ?? 0) + (previews?.length ?? 0)
        const item = { transition, bytes, done: (moved: Moved) => resume(Effect.succeed(moved)) }
        transitions.add(item, lastCommit < gathering.from)
      }),
    putOff: (runId, until) =>
      sql`update workflow_queue set due_at = ${new Date(until)} where run_id = ${runId}`.pipe(
        Effect.catch((error) => Effect.logWarning("a run could not be put off", { run_id: runId, error })),
        Effect.asVoid
      )
  })
})
