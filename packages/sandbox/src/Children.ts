import { startChild } from "./ChildProcess.ts"
import type { Child } from "./ChildProcess.ts"

export interface ChildrenOptions {
  /** With work at the same time. */
  readonly children: number
  /** Ready beyond those, to take the place of one that dies. */
  readonly spares: number
  /** How long one is kept without work. */
  readonly idleMs: number
  /** Calls that wait for one. */
  readonly waiting: () => number
  readonly maxResidentBytes: number
  readonly niceness: number
  /** One has become free for work. */
  readonly onFree: () => void
  /** None can be started, again and again. */
  readonly onHopeless: (reason: string) => void
}

/** A child and what is known of it. */
export interface Member {
  readonly child: Child
  /** Keys of the code that it was sent, with the characters of each, the last used last. */
  readonly codes: Map<string, number>
  readonly bornAt: number
  state: "starting" | "idle" | "busy" | "leaving"
  /** When it was given its last work, or started. */
  startedAt: number
  calls: number
}

/**
 * Bytes of heap that is kept warm, by one child and by all together. A process comes to about 80 MiB and this and a third:
 * 200 transformations in turn keep the default pool, the gateway's own memory included, under 1 GiB.
 */
const warmBytesOfOne = 64 * 1_048_576
const warmBytesOfAll = 128 * 1_048_576
const watchEveryMs = 10
/** An idle child that holds more than this part of what it may is replaced. */
const leaveAt = 0.6
const checkMemoryEvery = 64
/** One that cannot come back to the front is replaced after so long: starting another costs what a thousand quick calls do. */
const stuckMs = 30_000
const firstRestartMs = 50
const longestRestartMs = 5_000
/** Starts that fail in a row before calls are told so rather than kept waiting. */
const hopeless = 3

/**
 * The processes of the pool. There are as many as had work at once of late, and the spares: none before the first call, and none
 * when there has been no call for `idleMs`.
 */
export const makeChildren = (options: ChildrenOptions) => {
  const members = new Set<Member>()
  let busy = 0
  /** As many as are kept, spares not counted. */
  let kept = 0
  /** The most that were wanted at once since the last look. */
  let wanted = 0
  let isClosing = false
  let failedStarts = 0
  let complaint = ""
  let restart: NodeJS.Timeout | undefined
  let watch: NodeJS.Timeout | undefined
  let looking: NodeJS.Timeout | undefined

  const count = (...states: ReadonlyArray<Member["state"]>): number => {
    let sum = 0
    for (const { state } of members) if (states.includes(state)) sum++
    return sum
  }
  const missing = (): number => (kept === 0 ? 0 : kept + options.spares) - count("starting", "idle", "busy")

  const add = (): void => {
    let isReady = false
    const member: Member = {
      child: startChild({
        maxResidentBytes: options.maxResidentBytes,
        niceness: options.niceness,
        warmBytes: Math.min(warmBytesOfOne, Math.floor(warmBytesOfAll / options.children)),
        onReady: () => {
          isReady = true
          failedStarts = 0
          member.state = "idle"
          if (missing() < 0) return retire(member)
          options.onFree()
          fill()
        },
        onGone: (itsComplaint) => {
          members.delete(member)
          if (!isReady) {
            failedStarts++
            complaint = itsComplaint
            if (failedStarts >= hopeless) options.onHopeless(reason())
          }
          fill()
        }
      }),
      codes: new Map(),
      bornAt: Date.now(),
      state: "starting",
      startedAt: Date.now(),
      calls: 0
    }
    members.add(member)
  }

  const reason = (): string => `no sandbox process can be started: ${complaint.slice(0, 300)}`

  /** Starts what is missing, at once after a death, with growing pauses while starting fails. */
  const fill = (): void => {
    if (isClosing || restart !== undefined) return
    const pauseMs = failedStarts === 0 ? 0 : Math.min(longestRestartMs, firstRestartMs * 2 ** failedStarts)
    const start = (): void => {
      restart = undefined
      if (isClosing) return
      // While none works, one starts alone, so that what waits for it has the machine.
      let most = count("idle", "busy") > 0 ? Infinity : 1 - count("starting")
      while (missing() > 0 && most-- > 0) add()
    }
    if (pauseMs === 0) start()
    else restart = setTimeout(start, pauseMs)
  }

  const retire = (member: Member): void => {
    member.state = "leaving"
    member.child.retire()
  }

  const replace = (member: Member): void => {
    retire(member)
    fill()
  }

  /** Lets those go that were not wanted since the look before this one, those first that have been idle for longest. */
  const look = (): void => {
    const now = busy === 0 && options.waiting() > 0 ? 1 : busy
    kept = Math.max(wanted, now)
    wanted = now
    const idle = [...members].filter(({ state }) => state === "idle").toSorted((a, b) => a.startedAt - b.startedAt)
    for (const member of idle.slice(0, Math.max(0, -missing()))) retire(member)
    if (kept > 0) return
    clearInterval(looking)
    clearTimeout(restart)
    looking = restart = undefined
    failedStarts = 0
  }

  /** So many are wanted at once, as far as there may be so many. */
  const want = (atOnce: number): void => {
    wanted = Math.max(wanted, Math.min(options.children, atOnce))
    if (wanted <= kept || isClosing) return
    kept = wanted
    looking ??= setInterval(look, options.idleMs / 2).unref()
    fill()
  }

  /**
   * An idle child for the code: one that has it warm, else the used one with the least code, else a new one: the last child
   * stays unused, ready to take the place of one that dies.
   */
  const choose = (key: string | null): Member | undefined => {
    let best: Member | undefined
    let used = 0
    for (const member of members) {
      if (member.codes.size > 0) used++
      if (member.state !== "idle") continue
      if (key !== null && member.codes.has(key)) return member
      if (best === undefined || rank(member) < rank(best)) best = member
    }
    // Filling up the pool with code comes before loading one child with all of it.
    if (used < kept) for (const member of members) if (member.state === "idle" && member.codes.size === 0) return member
    return best
  }
  const rank = ({ codes }: Member): number => (codes.size === 0 ? Number.POSITIVE_INFINITY : codes.size)

  return {
    isFree: (): boolean => busy < options.children && count("idle") > 0,
    /** There is work that no child is free for: one more is started, unless one is starting. */
    grow: (): void => {
      fill()
      if (count("starting") === 0) want(busy + 1)
    },
    /** Takes one of those that are free; it is to be released. */
    take: (key: string | null): Member => {
      const member = choose(key)
      if (member === undefined) throw new Error("no child is free")
      member.state = "busy"
      member.startedAt = Date.now()
      want(++busy)
      watch ??= setInterval(() => {
        for (const { child, state } of members) if (state === "busy") child.watch()
      }, watchEveryMs)
      return member
    },
    /** What it was given, so many calls, has ended; `isDead`: and it with that. */
    release: (member: Member, isDead: boolean, calls: number): void => {
      if (--busy === 0) {
        clearInterval(watch)
        watch = undefined
      }
      member.state = isDead ? "leaving" : "idle"
      if (isDead) return
      if (member.child.isStuck() && Date.now() - member.bornAt > stuckMs) return replace(member)
      member.calls += calls
      // After what the watch has seen, and after many other calls: memory that was fragmented does not come back by itself.
      if (Date.now() - member.startedAt < watchEveryMs && member.calls < checkMemoryEvery) return
      member.calls = 0
      if ((member.child.residentBytes() ?? 0) > options.maxResidentBytes * leaveAt) replace(member)
    },
    /** Why there are none, for a call that would wait for one; null when there are, or may be soon. */
    hopeless: (): string | null => {
      if (failedStarts < hopeless) return null
      want(1)
      return reason()
    },
    pids: (): ReadonlyArray<number> => [...members].map(({ child }) => child.pid),
    close: async (): Promise<void> => {
      isClosing = true
      clearTimeout(restart)
      clearInterval(looking)
      const all = [...members]
      for (const { child } of all) child.kill()
      await Promise.all(all.map(({ child }) => child.gone))
      clearInterval(watch)
    }
  }
}
