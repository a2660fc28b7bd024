/**
 * Whose call is next: teams take turns, and a team never has more than `perTeam` calls running. Teams whose calls have been
 * slow share at most `forSlow` children among them, and those together with teams of which nothing is known yet at most
 * `forUnproven`, however many such teams there are. So endless loops cost their own kind, and there is always a child for
 * the quick.
 */
export interface TurnsOptions {
  readonly perTeam: number
  readonly forSlow: number
  readonly forUnproven: number
  readonly maxWaiting: number
  readonly maxWaitingPerTeam: number
}

interface Team<T> {
  readonly waiting: Array<T>
  running: number
  /** A moving mean of the milliseconds of its calls; null before the first has ended. */
  meanMs: number | null
}

/** A team counts as slow from this mean on (ms). */
const slowMs = 50
/** How much the last call counts. */
const weight = 0.3
/** Teams that are known while they have no calls; then those that came first are strangers again. */
const maxRemembered = 10_000

export const makeTurns = <T>(options: TurnsOptions) => {
  /** Every team that waits, runs or is remembered. */
  const teams = new Map<string, Team<T>>()
  /** Those that wait, in the order of their turns. */
  const ring = new Map<string, Team<T>>()
  let waiting = 0
  let slowRunning = 0
  let unprovenRunning = 0

  const isSlow = ({ meanMs }: Team<T>): boolean => meanMs !== null && meanMs >= slowMs
  const isUnproven = ({ meanMs }: Team<T>): boolean => meanMs === null || meanMs >= slowMs

  const forget = (): void => {
    if (teams.size <= maxRemembered) return
    for (const [id, team] of teams) {
      if (team.waiting.length === 0 && team.running === 0) teams.delete(id)
      if (teams.size <= maxRemembered) return
    }
  }

  const mayRun = (team: Team<T>): boolean =>
    team.running < options.perTeam &&
    (!isSlow(team) || slowRunning < options.forSlow) &&
    (!isUnproven(team) || unprovenRunning < options.forUnproven)

  const leave = (id: string, team: Team<T>): void => {
    if (team.waiting.length === 0) ring.delete(id)
  }

  return {
    waiting: () => waiting,
    /** False when there is no room for it. `again`: it goes to the front, and always finds room. */
    add: (teamId: string, item: T, again = false): boolean => {
      const team = teams.get(teamId) ?? { waiting: [], running: 0, meanMs: null }
      if (!again && (waiting >= options.maxWaiting || team.waiting.length >= options.maxWaitingPerTeam)) return false
      teams.set(teamId, team)
      if (!ring.has(teamId)) ring.set(teamId, team)
      if (again) team.waiting.unshift(item)
      else team.waiting.push(item)
      waiting++
      return true
    },
    /** The next that may run, which then counts as running until `done`. */
    take: (): { readonly item: T; readonly done: (ms: number) => void } | undefined => {
      for (const [id, team] of ring) {
        if (!mayRun(team)) continue
        const item = team.waiting.shift()
        if (item === undefined) continue
        waiting--
        // To the back of the queue of teams.
        ring.delete(id)
        if (team.waiting.length > 0) ring.set(id, team)
        team.running++
        const countsAsSlow = isSlow(team)
        const countsAsUnproven = isUnproven(team)
        if (countsAsSlow) slowRunning++
        if (countsAsUnproven) unprovenRunning++
        const done = (ms: number): void => {
          team.running--
          if (countsAsSlow) slowRunning--
          if (countsAsUnproven) unprovenRunning--
          team.meanMs = team.meanMs === null ? ms : team.meanMs + weight * (ms - team.meanMs)
          leave(id, team)
          forget()
        }
        return { item, done }
      }
      return undefined
    },
    remove: (teamId: string, item: T): boolean => {
      const team = teams.get(teamId)
      const at = team?.waiting.indexOf(item) ?? -1
      if (team === undefined || at < 0) return false
      team.waiting.splice(at, 1)
      waiting--
      leave(teamId, team)
      return true
    },
    /** Empties the queue. */
    drain: (): ReadonlyArray<T> => {
      const items = [...ring.values()].flatMap((team) => team.waiting.splice(0))
      ring.clear()
      waiting = 0
      return items
    }
  }
}
