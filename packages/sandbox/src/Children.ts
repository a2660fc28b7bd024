import { startChild } from "./ChildProcess.ts"
import type { Child } from "./ChildProcess.ts"

export interface ChildrenOptions {
  /** Children that work at the same time. */
  readonly children: number
  /** Idle children beyond those, which replace one that dies. */
  readonly spares: number
  /** Milliseconds for which a child is kept without work. */
  readonly idleMs: number
  /** Calls that wait for a child. */
  readonly waiting: () => number
  readonly maxResidentBytes: number
  readonly niceness: number
  /** A child has become free. */
  readonly onFree: () => void
  /** Starting children has failed several times in a row. */
  readonly onHopeless: (reason: string) => void
}

/** A child and its state. */
export interface Member {
  readonly child: Child
  /** Keys of the code that the child has, with the characters of each; the most recently used is last. */
  readonly codes: Map<string, number>
  readonly bornAt: number
  state: "starting" | "idle" | "busy" | "leaving"
  /** When its last work began, or when it was started. */
  startedAt: number
  calls: number
}

/**
 * Bytes of heap that is kept warm, by one child and by all together. A process takes about 80 MiB plus 1.3 times this. With that, 200
 * transformations in turn keep the default pool, including the gateway's own memory, under 1 GiB.
 */
const warmBytesOfOne = 64 * 1_048_576
const warmBytesOfAll = 128 * 1_048_576
const watchEveryMs = 10
/** An idle child that uses more than this share of its memory limit is replaced. */
const leaveAt = 0.6
const checkMemoryEvery = 64
/** A child that cannot get its priority back is replaced after this time: starting another costs as much as a thousand fast calls. */
const stuckMs = 30_000
const firstRestartMs = 50
const longestRestartMs = 5_000
/** Failed starts in a row after which calls fail instead of waiting. */
const hopeless = 3

/**
 * Chooses an idle child for the code: one that has it warm, else the used one with the least code, else an unused one. So the last
 * child stays unused, ready to replace one that dies. `kept`: the number of children to keep, without the spares.
 */
const choose = (members: ReadonlySet<Member>, kept: number, key: string | null): Member | undefined => {
  let best: Member | undefined
  let used = 0
  for (const member of members) {
    if (member.codes.size > 0) used++
    if (member.state !== "idle") continue
    if (key !== null && member.codes.has(key)) return member
    if (best === undefined || rank(member) < rank(best)) best = member
  }
  // Code is spread over all children before one child gets all of it.
  if (used < kept) for (const member of members) if (member.state === "idle" && member.codes.size === 0) return member
  return best
}

const rank = ({ codes }: Member): number => (codes.size === 0 ? Number.POSITIVE_INFINITY : codes.size)

/** Whether the child has to be replaced after an order of `calls` calls. */
const isWornOut = (member: Member, calls: number, maxResidentBytes: number): boolean => {
  if (member.child.isStuck() && Date.now() - member.bornAt > stuckMs) return true
  member.calls += calls
  // Memory is checked after long orders and after many short ones: fragmented memory is not returned by itself.
  if (Date.now() - member.startedAt < watchEveryMs && member.calls < checkMemoryEvery) return false
  member.calls = 0
  return (member.child.residentBytes() ?? 0) > maxResidentBytes * leaveAt
}

/**
 * The processes of the pool: as many as worked at the same time recently, plus the spares. There are none before the first call,
 * and none after `idleMs` without a call.
 */
export const makeChildren = (options: ChildrenOptions) => {
  const members = new Set<Member>()
  let busy = 0
  /** Children to keep, without the spares. */
  let kept = 0
  /** The most that were needed at once since the last check. */
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

  /** Starts missing children: at once after a death, with growing pauses while starts fail. */
  const fill = (): void => {
    if (isClosing || restart !== undefined) return
    const pauseMs = failedStarts === 0 ? 0 : Math.min(longestRestartMs, firstRestartMs * 2 ** failedStarts)
    const start = (): void => {
      restart = undefined
      if (isClosing) return
      // While no child works, only one starts, so that the call that waits for it gets the whole machine.
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

  /** Ends children that were not needed since the check before this one; those that were idle longest go first. */
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

  /** Requests that many children at once, up to the limit. */
  const want = (atOnce: number): void => {
    wanted = Math.max(wanted, Math.min(options.children, atOnce))
    if (wanted <= kept || isClosing) return
    kept = wanted
    looking ??= setInterval(look, options.idleMs / 2).unref()
    fill()
  }

  return {
    isFree: (): boolean => busy < options.children && count("idle") > 0,
    /** Work waits and no child is free: starts one more, unless one is starting. */
    grow: (): void => {
      fill()
      if (count("starting") === 0) want(busy + 1)
    },
    /** Takes a free child; the caller has to release it. */
    take: (key: string | null): Member => {
      const member = choose(members, kept, key)
      if (member === undefined) throw new Error("no child is free")
      member.state = "busy"
      member.startedAt = Date.now()
      want(++busy)
      watch ??= setInterval(() => {
        for (const { child, state } of members) if (state === "busy") child.watch()
      }, watchEveryMs)
      return member
    },
    /** The child's order of `calls` calls has ended; `isDead`: the child died with it. */
    release: (member: Member, isDead: boolean, calls: number): void => {
      if (--busy === 0) {
        clearInterval(watch)
        watch = undefined
      }
      member.state = isDead ? "leaving" : "idle"
      if (!isDead && isWornOut(member, calls, options.maxResidentBytes)) replace(member)
    },
    /** Why no child can be started, for a call that would wait for one; null if there are children or may be soon. */
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
