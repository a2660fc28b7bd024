import { Effect } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"

/** How many may be under way at once, of all teams and of one, and how many of one team may wait for their turn. */
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

/** Teams take turns at what there are few of, so that whoever asks for most does not hold what the others need. */
export interface TeamSemaphore {
  /** Runs an effect in a turn of the team; 429 `RATE_LIMITED` where too many of the team's wait already. */
  readonly during: (team: string) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayError, R>
}

/** Turns of this process. `what` is waited for, as a refusal names it: "reports". */
export const makeTeamSemaphore = (what: string, { atOnce, perTeam, waiting }: TurnBounds): TeamSemaphore => {
  // In the order in which teams had their last turn. A team that neither holds nor waits is not kept.
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
          // Whoever is interrupted while it waits gives up its place, or the turn that it has just been given.
          Effect.sync(() => {
            if (turn !== null) leave(id, turn)
          })
        )
      })
  }
}
