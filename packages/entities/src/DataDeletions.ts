import { Clock, Effect } from "effect"
import { type Sharding, Singleton } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { advanceDataDeletion, type OpenDataDeletion, openDataDeletions } from "@tidegate/storage/deletion/DataRemoval"
import { readPlaces } from "@tidegate/storage/deletion/Places"
import {
  beginDataRemoval,
  cancelSelectedEvents,
  type SelectedRun,
  selectedRuns
} from "@tidegate/storage/deletion/Stopping"
import type { Secrets, SecretUnreadable } from "@tidegate/storage/secrets/Secrets"
import { destinationsBehind } from "@tidegate/storage/teams/TeamRemoval"
import { DestinationEntity } from "./Destination/DestinationProtocol.ts"
import { WorkflowEntity } from "./Workflow/WorkflowProtocol.ts"

/** The longest time (ms) between two looks: a new deletion is found by a look. */
const everyMs = 2_000

/** A deletion gives way to the others after this time (ms). */
const turnMs = 5_000

/** How long an actor may take: longer than a fail-over of its shard. */
const patience = "15 seconds"

/**
 * Cancels what waits of the selected requests and runs. Actors are told, and have to answer: those of all destinations read again
 * what is to be delivered, so that no process still has a payload in its queue. An attempt or a step that is under way is not
 * broken off. Its result finds no row, and is not stored.
 */
const stopActors = Effect.fnUntraced(function* (deletion: OpenDataDeletion) {
  const destination = yield* DestinationEntity.client
  const workflow = yield* WorkflowEntity.client
  const { team_id } = deletion
  // A run that cannot be cancelled now is deleted nevertheless: its next commit finds no row, and its actor gives it up.
  const cancel = ({ id, workflow_id }: SelectedRun) =>
    Effect.ignore(Effect.timeout(workflow(workflow_id).CancelRun({ team_id, run_id: id }), patience))
  for (let after: string | null = ""; after !== null;) {
    const part: Effect.Success<ReturnType<typeof selectedRuns>> = yield* selectedRuns(deletion, after)
    yield* Effect.forEach(part.stopped, cancel, { concurrency: 16, discard: true })
    after = part.after
  }
  for (let after: string | null = ""; after !== null;) {
    const part: Effect.Success<ReturnType<typeof cancelSelectedEvents>> = yield* cancelSelectedEvents(deletion, after)
    after = part.after
  }
  for (let after = ""; ;) {
    const some: ReadonlyArray<string> = yield* destinationsBehind(team_id, after)
    if (some.length === 0) break
    yield* Effect.forEach(some, (id) => destination(id).Reread(), { concurrency: 16, discard: true }).pipe(
      Effect.timeout(patience)
    )
    after = some.at(-1)!
  }
  yield* beginDataRemoval(deletion.id)
})

/** Goes on with a deletion as far as it can in its turn. Returns how long (ms) it has to wait. */
const advance = Effect.fnUntraced(function* (deletion: OpenDataDeletion) {
  const until = (yield* Clock.currentTimeMillis) + turnMs
  const places = yield* readPlaces
  for (;;) {
    const began = yield* Clock.currentTimeMillis
    if (began >= until) return 0
    const next = yield* advanceDataDeletion(deletion.id, places)
    if (next === "to be stopped") yield* stopActors(deletion)
    else if (next !== 0) return next === "at rest" ? everyMs : next
    // Half of the time is for others.
    yield* Effect.sleep((yield* Clock.currentTimeMillis) - began)
  }
})

/** Goes on with all deletions in turn. Returns when to look again at the latest (ms from now). */
export const advanceDataDeletions: Effect.Effect<
  number,
  SqlError.SqlError | SecretUnreadable,
  Database | Secrets | Sharding.Sharding
> = Effect.gen(function* () {
  let next = everyMs
  for (const deletion of yield* openDataDeletions) {
    // One that cannot go on does not stop the others.
    const wait = yield* Effect.catchCause(advance(deletion), (cause) =>
      Effect.as(
        Effect.logWarning("a deletion of data could not go on yet; the next look does", { id: deletion.id }, cause),
        everyMs
      )
    )
    next = Math.min(next, wait)
  }
  return next
})

/** Deletes data on one runner of the cluster. The progress is in SQL, so another runner goes on when it is lost. */
export const layer = Singleton.make(
  "DataDeletions",
  Effect.forever(
    Effect.gen(function* () {
      const wait = yield* Effect.catchCause(advanceDataDeletions, (cause) =>
        Effect.as(Effect.logWarning("deletions of data could not be looked for; the next look goes on", cause), everyMs)
      )
      yield* Effect.sleep(wait)
    })
  )
)
