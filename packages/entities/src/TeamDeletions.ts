import { Clock, Effect } from "effect"
import { type Sharding, Singleton } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Database } from "@tidegate/storage/Database"
import {
  beginPassAgain,
  beginRemoval,
  channelsLeft,
  DeletionPace,
  destinationsBehind,
  type OpenDeletion,
  openDeletions,
  removePiece,
  workflowsUnderWay
} from "@tidegate/storage/teams/TeamRemoval"
import { reloadDestinations, wakeUps } from "./dispatch/WakeUps.ts"

/** The longest time (ms) between two looks: a new deletion is found by a look. */
const everyMs = 5_000

/**
 * Lets the actors of the team know that their resources are gone. Returns whether all of them have stopped: deliveries and runs
 * begin nothing more, and channels have unsubscribed.
 */
const stopActors = Effect.fnUntraced(function* ({ id, requested_at }: OpenDeletion) {
  const { channelsMs } = yield* DeletionPace
  const { wakeChannel, wakeWorkflow } = yield* wakeUps
  let after = ""
  for (;;) {
    const destinations = yield* destinationsBehind(id, after)
    if (destinations.length === 0) break
    yield* reloadDestinations(destinations)
    after = destinations.at(-1)!
  }
  yield* Effect.forEach(yield* workflowsUnderWay(id), wakeWorkflow, { concurrency: 16, discard: true })
  const channels = yield* channelsLeft(id)
  yield* Effect.forEach(channels, wakeChannel, { concurrency: 16, discard: true })
  if (channels.length === 0) return true
  const isLate = (yield* Clock.currentTimeMillis) >= requested_at.getTime() + channelsMs
  if (isLate) {
    yield* Effect.logWarning("channels of a deleted team could not unsubscribe; their providers may go on sending", {
      team: id,
      channels: channels.length
    })
  }
  return isLate
})

/** Goes on with a deletion as far as it can. Returns how long (ms) it has to wait; null: it is done. */
const advance = Effect.fnUntraced(function* (deletion: OpenDeletion) {
  const { id, stage } = deletion
  if (stage === "stopping") {
    if (!(yield* stopActors(deletion))) return everyMs
    yield* beginRemoval(id)
  }
  for (;;) {
    const began = yield* Clock.currentTimeMillis
    const wait = yield* Effect.tapError(removePiece(id), () => Effect.ignore(beginPassAgain(id)))
    if (wait === null) yield* Effect.logInfo("a team was deleted with all it had", { team: id })
    if (wait !== 0) return wait
    // Half of the time is for others.
    yield* Effect.sleep((yield* Clock.currentTimeMillis) - began)
  }
})

/** Goes on with all deletions. Returns when to look again at the latest (ms from now). */
export const advanceDeletions: Effect.Effect<number, SqlError.SqlError | GatewayError, Database | Sharding.Sharding> =
  Effect.gen(function* () {
    let next = everyMs
    for (const deletion of yield* openDeletions) {
      // One that cannot go on does not stop the others.
      const wait = yield* Effect.catchCause(advance(deletion), (cause) =>
        Effect.as(
          Effect.logWarning(
            "the deletion of a team could not go on yet; the next look does",
            { team: deletion.id },
            cause
          ),
          everyMs
        )
      )
      next = Math.min(next, wait ?? everyMs)
    }
    return next
  })

/** Deletes teams on one runner of the cluster. The progress is in SQL, so another runner goes on when it is lost. */
export const layer = Singleton.make(
  "TeamDeletions",
  Effect.forever(
    Effect.gen(function* () {
      const wait = yield* Effect.catchCause(advanceDeletions, (cause) =>
        Effect.as(
          Effect.logWarning("deletions of teams could not be looked for; the next look goes on", cause),
          everyMs
        )
      )
      yield* Effect.sleep(wait)
    })
  )
)
