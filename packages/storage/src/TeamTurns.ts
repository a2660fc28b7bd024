import { Effect } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"

/** The limits: how many effects may run at once, of all teams and of one team, and how many of one team may wait. */
export interface TurnBounds {
  readonly atOnce: number
  readonly perTeam: number
  readonly waiting: number
}

interface Turn {
  state: "waiting" | "held" | "over"
  readonly granted: () => void
}

interface Team {
  held: number
  readonly queue: Set<Turn>
}

/** A fair semaphore: teams take turns at a scarce resource, so that the busiest team does not take what the others need. */
export interface TeamSemaphore {
  /** Runs an effect with one of the team's permits; 429 `RATE_LIMITED` when too many of the team's wait already. */
  readonly during: (team: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayError, R>
}

/** The semaphore of this process. `what` names the resource in a refusal: "reports". */
export const makeTeamSemaphore = (what: string, { atOnce, perTeam, waiting }: TurnBounds): TeamSemaphore => {
  // In the order of the teams' last turns. A team that neither holds nor waits is removed.
  const teams = new Map<string, Team>()
  let held = 0

  const nextTeam = (): readonly [string, Team] | undefined => {
    for (const entry of teams) if (entry[1].queue.size > 0 && entry[1].held < perTeam) return entry
    return undefined
  }

  const grant = (): void => {
    while (held < atOnce) {
      const next = nextTeam()
      if (next === undefined) return
      const [id, team] = next
      const [turn] = team.queue
      team.queue.delete(turn!)
      teams.delete(id)
      teams.set(id, team)
      team.held++
      held++
      turn!.state = "held"
      turn!.granted()
    }
  }

  const leave = (id: string, turn: Turn): void => {
    const team = teams.get(id)
    if (team === undefined) return
    if (turn.state === "held") {
      team.held--
      held--
    } else team.queue.delete(turn)
    turn.state = "over"
    if (team.held === 0 && team.queue.size === 0) teams.delete(id)
    grant()
  }

  return {
    during: (id) => (effect) =>
      Effect.uninterruptibleMask((restore) => {
        let turn: Turn | null = null
        const wait = Effect.callback<void, GatewayError>((resume) => {
          const team = teams.get(id) ?? { held: 0, queue: new Set() }
          if (team.queue.size >= waiting) {
            const message = `${perTeam} ${what} of the team are under way and ${waiting} wait: repeat the call when one has ended`
            return resume(Effect.fail(fail("RATE_LIMITED", message, { scope: what, limit: perTeam })))
          }
          turn = { state: "waiting", granted: () => resume(Effect.void) }
          team.queue.add(turn)
          teams.set(id, team)
          grant()
        })
        return Effect.ensuring(
          Effect.andThen(restore(wait), restore(effect)),
          // An interrupted waiter gives up its place in the queue, or the permit that it has just got.
          Effect.sync(() => {
            if (turn !== null) leave(id, turn)
          })
        )
      })
  }
}
