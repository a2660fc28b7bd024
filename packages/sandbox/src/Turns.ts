/**
 * The fair queue of calls: teams take turns, and within a team its codes; a team never has more than `perTeam` calls running. Slow code
 * uses at most `forSlow` children. Slow code and code that is not measured yet together use at most `forUnproven`. Within its own share, a
 * team keeps one child for its fast code. So endless loops delay other slow code only, and there is always a child for fast code.
 */
export interface TurnsOptions {
  readonly perTeam: number
  readonly forSlow: number
  readonly forUnproven: number
  readonly maxWaiting: number
  readonly maxWaitingPerTeam: number
}

export interface Turn<T> {
  readonly item: T
  /** The calls of the code were slow. */
  readonly isSlow: boolean
  readonly more: (mayGoAlong: (item: T) => boolean) => T | undefined
  readonly done: (ms: number) => void
}

interface Code<T> {
  readonly waiting: Array<T>
  running: number
  /** Moving mean of the milliseconds of its calls; null before the first has ended. */
  meanMs: number | null
}

interface Team<T> {
  /** All code of the team that waits, runs or is remembered. */
  readonly codes: Map<string, Code<T>>
  /** Code that waits, in the order of its turns. */
  readonly ring: Map<string, Code<T>>
  waiting: number
  running: number
  unprovenRunning: number
}

/** Milliseconds that one turn of fast code may take: it has as many calls as fit. */
const turnMs = 5
/** Code counts as slow from this mean (ms). */
const slowMs = 50
/** Weight of the last call in the moving mean. */
const weight = 0.3
/** Codes without calls whose mean is remembered; beyond that, the oldest are forgotten. */
const maxRemembered = 10_000

export const makeTurns = <T>(options: TurnsOptions) => {
  const perTeamUnproven = Math.max(1, options.perTeam - 1)
  const teams = new Map<string, Team<T>>()
  /** Teams that wait, in the order of their turns. */
  const ring = new Map<string, Team<T>>()
  let remembered = 0
  let waiting = 0
  let slowRunning = 0
  let unprovenRunning = 0

  const isSlow = ({ meanMs }: Code<T>): boolean => meanMs !== null && meanMs >= slowMs
  const isUnproven = ({ meanMs }: Code<T>): boolean => meanMs === null || meanMs >= slowMs

  const forget = (): void => {
    if (remembered <= maxRemembered) return
    for (const [teamId, team] of teams) {
      for (const [key, code] of team.codes) {
        if (code.waiting.length > 0 || code.running > 0) continue
        team.codes.delete(key)
        if (--remembered <= maxRemembered) break
      }
      if (team.codes.size === 0) teams.delete(teamId)
      if (remembered <= maxRemembered) return
    }
  }

  const known = (teamId: string, key: string): { readonly team: Team<T>; readonly code: Code<T> } => {
    let team = teams.get(teamId)
    if (team === undefined) {
      team = { codes: new Map(), ring: new Map(), waiting: 0, running: 0, unprovenRunning: 0 }
      teams.set(teamId, team)
    }
    let code = team.codes.get(key)
    if (code === undefined) {
      code = { waiting: [], running: 0, meanMs: null }
      team.codes.set(key, code)
      remembered++
    }
    return { team, code }
  }

  const mayRun = (team: Team<T>, code: Code<T>): boolean =>
    (!isSlow(code) || slowRunning < options.forSlow) &&
    (!isUnproven(code) || (unprovenRunning < options.forUnproven && team.unprovenRunning < perTeamUnproven))

  const leaveRing = (teamId: string, team: Team<T>, key: string, code: Code<T>): void => {
    if (code.waiting.length === 0) team.ring.delete(key)
    if (team.ring.size === 0) ring.delete(teamId)
  }

  const start = (team: Team<T>, code: Code<T>): ((ms: number) => void) => {
    const slow = isSlow(code) ? 1 : 0
    const unproven = isUnproven(code) ? 1 : 0
    team.running++
    code.running++
    slowRunning += slow
    unprovenRunning += unproven
    team.unprovenRunning += unproven
    return (ms) => {
      team.running--
      code.running--
      slowRunning -= slow
      unprovenRunning -= unproven
      team.unprovenRunning -= unproven
      code.meanMs = code.meanMs === null ? ms : code.meanMs + weight * (ms - code.meanMs)
      forget()
    }
  }

  return {
    waiting: () => waiting,
    /** Returns false if the queue is full. `again`: the item goes to the front of its code's queue, and is always accepted. */
    add: (teamId: string, key: string, item: T, again = false): boolean => {
      if (!again) {
        if (waiting >= options.maxWaiting) return false
        if ((teams.get(teamId)?.waiting ?? 0) >= options.maxWaitingPerTeam) return false
      }
      const { code, team } = known(teamId, key)
      if (again) code.waiting.unshift(item)
      else code.waiting.push(item)
      if (!team.ring.has(key)) team.ring.set(key, code)
      if (!ring.has(teamId)) ring.set(teamId, team)
      team.waiting++
      waiting++
      return true
    },
    /**
     * Takes the next item that may run; it counts as running until `done` is called with the milliseconds of a call. `more` adds further
     * calls of the same code to the turn: those that wait, may join the batch, and fit into one turn by the code's mean.
     */
    take: (): Turn<T> | undefined => {
      for (const [teamId, team] of ring) {
        if (team.running >= options.perTeam) continue
        for (const [key, code] of team.ring) {
          if (!mayRun(team, code)) continue
          const item = code.waiting.shift()
          if (item === undefined) continue
          team.waiting--
          waiting--
          // Moves the code and the team to the back of their queues.
          team.ring.delete(key)
          if (code.waiting.length > 0) team.ring.set(key, code)
          ring.delete(teamId)
          if (team.ring.size > 0) ring.set(teamId, team)
          let taken = 1
          const more = (mayGoAlong: (item: T) => boolean): T | undefined => {
            const next = code.waiting[0]
            if (next === undefined || code.meanMs === null || (taken + 1) * code.meanMs > turnMs) return undefined
            if (!mayGoAlong(next)) return undefined
            code.waiting.shift()
            team.waiting--
            waiting--
            taken++
            leaveRing(teamId, team, key, code)
            return next
          }
          return { item, isSlow: isSlow(code), more, done: start(team, code) }
        }
      }
      return undefined
    },
    remove: (teamId: string, key: string, item: T): boolean => {
      const team = teams.get(teamId)
      const code = team?.codes.get(key)
      const at = code?.waiting.indexOf(item) ?? -1
      if (team === undefined || code === undefined || at < 0) return false
      code.waiting.splice(at, 1)
      team.waiting--
      waiting--
      leaveRing(teamId, team, key, code)
      return true
    },
    /** Empties the queue. */
    drain: (): ReadonlyArray<T> => {
      const items: Array<T> = []
      for (const team of ring.values()) {
        for (const code of team.ring.values()) items.push(...code.waiting.splice(0))
        team.ring.clear()
        team.waiting = 0
      }
      ring.clear()
      waiting = 0
      return items
    }
  }
}
