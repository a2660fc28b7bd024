import { Effect } from "effect"
import { ActionEntity } from "../../Action/ActionProtocol.ts"

/** Longer than an actor lets a step wait. After this, the answer or the runner is lost. */
const patience = "45 seconds"

/** Waits for a rate permit from a saved action's actor. False: none was given yet, and the step has to ask again. */
export const makePacing = Effect.map(
  ActionEntity.client,
  (actor) =>
    (
      id: string,
      { group, since, team_id }: { readonly team_id: string; readonly group: string; readonly since: number }
    ) =>
      actor(id)
        .Turn({ team_id, line: group, since })
        .pipe(
          Effect.timeout(patience),
          // Fails closed: while nothing gives permits, the step waits.
          Effect.catchCause(() => Effect.succeed(false))
        )
)
