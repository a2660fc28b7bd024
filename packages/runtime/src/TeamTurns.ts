import { Effect, Semaphore } from "effect"

/** A semaphore with `perTeam` permits for each team: further work of a team waits, and does not delay other teams. */
export const makeTeamSemaphore = (perTeam: number) => {
  const teams = new Map<string, { readonly semaphore: Semaphore.Semaphore; users: number }>()
  return <A, E, R>(teamId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const team = teams.get(teamId) ?? { semaphore: Semaphore.makeUnsafe(perTeam), users: 0 }
      teams.set(teamId, team)
      team.users++
      return Effect.ensuring(
        Semaphore.withPermit(team.semaphore)(work),
        Effect.sync(() => {
          if (--team.users === 0) teams.delete(teamId)
        })
      )
    })
}
