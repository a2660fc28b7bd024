import { Effect } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { permitsByKey, type PermitsByKeyOptions } from "@tidegate/runtime/FairSemaphore"

/** How many reads are under way at once, of all teams and of one team, and how many of one team wait. */
export interface ReadLimits {
  readonly atOnce: number
  readonly perTeam: number
  readonly waiting: number
  /** What happens between two reads at the same place, see `PermitsByKeyOptions`. */
  readonly resting?: NonNullable<PermitsByKeyOptions["resting"]>
}

/**
 * Reads share few database connections. Teams share them fairly: a team with many reads does not take the connections that
 * others need.
 */
export interface TeamReads {
  /** Reads when the team may. 429 `RATE_LIMITED` while too many reads of the team wait already. */
  readonly during: (team: string) => <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayError, R>
}

/** The reads of this process. `what`: their name in a refusal, such as "reports". */
export const makeTeamReads = (what: string, { atOnce, perTeam, waiting, ...rest }: ReadLimits): TeamReads => {
  const permits = permitsByKey({ permits: atOnce, perKey: perTeam, maxWaiting: waiting, ...rest })
  const message = `${perTeam} ${what} of the team are under way and ${waiting} wait: repeat the call when one has ended`
  const full = Effect.suspend(() => Effect.fail(fail("RATE_LIMITED", message, { scope: what, limit: perTeam })))
  return { during: (team) => (read) => permits.within(team)(read, full) }
}
