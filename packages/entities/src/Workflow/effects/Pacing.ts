import { Effect } from "effect"
import { ActionEntity } from "../../Action/ActionProtocol.ts"

/** Longer than an actor keeps one waiting: its answer got lost, or its runner. */
const patience = "45 seconds"

/** Waits for the turn of a saved action, which its actor gives. False: there was none yet, and it is to be asked for again. */
export const makePacing = Effect.map(
  ActionEntity.client,
  (actor) => (id: string, asked: { readonly team_id: string; readonly line: string; readonly since: number }) =>
    actor(id)
      .Turn(asked)
      .pipe(
        Effect.timeout(patience),
        // Fails closed: while nobody gives turns the step waits.
        Effect.catchCause(() => Effect.succeed(false))
      )
)
