import { Context, Effect, Layer, type Scope } from "effect"
import { isTransient, JournalSql } from "./Database.ts"
import { addingUp } from "./journal/Counting.ts"
import { GroupCommit } from "./journal/GroupCommit.ts"
import { committed } from "./journal/JournalTelemetry.ts"
import { runCommit, type RunTransition } from "./journal/RunStatement.ts"
import { withPartitions } from "./Partitions.ts"

export type { RunTransition } from "./journal/RunStatement.ts"

/**
 * What became of a transition handed in: `stored`: it is durable. `superseded`: somebody else has taken the run on, or it is gone; nothing was
 * written. `failed`: nothing is known of it; the run is found by the sweep, as it is stored.
 */
export type Moved = "stored" | "superseded" | "failed"

interface Item {
  readonly transition: RunTransition
  readonly bytes: number
  readonly done: (moved: Moved) => void
}

/** The one writer of runs, one per process: what has gathered is committed in one statement. */
export class RunJournal extends Context.Service<
  RunJournal,
  {
    /** Callers bound what they hand in. */
    readonly move: (transition: RunTransition) => Effect.Effect<Moved>
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

  const commit = (items: ReadonlyArray<Item>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { parameters, statement } = runCommit(items.map(({ transition }) => transition))
      return Effect.map(sql.unsafe<{ id: string }>(statement, parameters), (rows) => {
        const stored = new Set(rows.map(({ id }) => id))
        counted(rows.length)
        for (const { done, transition } of items) done(stored.has(transition.id) ? "stored" : "superseded")
      })
    }).pipe(
      withPartitions(sql),
      Effect.catch((error) => {
        if (items.length > 1 && !isTransient(error)) {
          // One that the database refuses costs the others of its batch nothing.
          const half = items.length >> 1
          return Effect.andThen(commit(items.slice(0, half)), commit(items.slice(half)))
        }
        return Effect.andThen(
          Effect.logWarning("runs could not be stored; the sweep comes back to them", { runs: items.length, error }),
          Effect.sync(() => {
            for (const item of items) item.done("failed")
          })
        )
      })
    )

  const transitions = new GroupCommit<Item>({
    committed: committed("run"),
    commit,
    lanes: 2,
    maxItems: 400,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 24,
    sizeOf: ({ bytes }) => bytes,
    run
  })

  return RunJournal.of({
    move: (transition) =>
      Effect.callback<Moved>((resume) => {
        const { carried, outputs, previews, steps } = transition
        const bytes = 512 + steps.length + (carried?.length ?? 0) + (outputs?.length ?? 0) + (previews?.length ?? 0)
        transitions.add({ transition, bytes, done: (moved) => resume(Effect.succeed(moved)) })
      })
  })
})
