import { Cause, Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import { yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import type { DecidedJob } from "@tidegate/storage/journal/RoutingRecord"
import { makeWindowReader } from "@tidegate/storage/delivery/RoutingJobs"
import { Hand } from "../InHand.ts"
import { decide, decideInHand, type Decider, type DecidingHost, eventIdOf, routeOf, unaskedMs } from "./Decide.ts"
import { GroupDecisions, groupByKey } from "./KeyGroup.ts"
import type { PendingRequest } from "./PendingRequest.ts"

/**
 * Transformations of one connection under way: as many as go to the sandbox together. The sandbox takes this many from each
 * connection, and shares its capacity fairly among teams.
 */
const concurrency = 64

/** Takes decisions about the first of these requests as soon as they are made. */
type Commit = (requests: ReadonlyArray<PendingRequest>, decided: ReadonlyArray<DecidedJob>) => void

/** Decides about groups without a fiber for each: their requests need not be recorded as work in hand. */
const decidePlain = (
  host: DecidingHost,
  decider: Decider,
  groups: ReadonlyArray<GroupDecisions>,
  done: (group: GroupDecisions) => void
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const cancels = new Map<GroupDecisions, () => void>()
    const changed = Latch.makeUnsafe()
    let underWay = 0
    let awaited = 0
    const goOn = (group: GroupDecisions): void => {
      const request = group.next()
      if (request === null) {
        cancels.delete(group)
        underWay--
        try {
          done(group)
        } finally {
          // Last, because a waiting fiber continues at once.
          if (underWay <= awaited) changed.openUnsafe()
        }
        return
      }
      let isOver = false
      const cancel = decide(host, decider, request, eventIdOf(decider, request), (decided) => {
        isOver = true
        group.take(decided)
        goOn(group)
      })
      if (!isOver) cancels.set(group, cancel)
    }
    const untilUnderWay = Effect.fnUntraced(function* (most: number) {
      awaited = most
      changed.closeUnsafe()
      if (underWay > most) yield* changed.await
    })
    return Effect.onInterrupt(
      Effect.gen(function* () {
        let since = performance.now()
        for (const group of groups) {
          if (underWay === concurrency) yield* untilUnderWay(concurrency / 2)
          underWay++
          goOn(group)
          if (performance.now() - since <= unaskedMs) continue
          yield* yieldIfSpent(since)
          since = performance.now()
        }
        yield* untilUnderWay(0)
      }),
      () => Effect.sync(() => cancels.forEach((cancel) => cancel()))
    )
  })

/** Decides about groups whose requests may have to be recorded as work in hand. */
const decideRecorded = (
  host: DecidingHost,
  decider: Decider,
  groups: ReadonlyArray<GroupDecisions>,
  done: (group: GroupDecisions) => void
): Effect.Effect<void, never, Database> =>
  Effect.forEach(
    groups,
    Effect.fnUntraced(function* (group) {
      for (let request = group.next(); request !== null; request = group.next()) {
        group.take(yield* decideInHand(host, decider, request))
      }
      done(group)
    }),
    { concurrency, discard: true }
  )

/** Decides about batches of requests. Each call returns how many of its requests were decided. */
export const makeBatchDecider = Effect.gen(function* () {
  const windowsOf = yield* makeWindowReader
  const clock = yield* Clock.Clock
  const hand = yield* Hand
  const run = Effect.runForkWith(yield* Effect.context())

  /** When one request fails unexpectedly, the others of its batch are not affected: it waits for the poller. */
  const broke = ({ id }: PendingRequest, cause: unknown): void =>
    void run(Effect.logError("a pending request could not be decided", { request_id: id }, Cause.die(cause)))
  const now = (): number => clock.currentTimeMillisUnsafe()

  return Effect.fnUntraced(function* (
    decider: Decider,
    requests: ReadonlyArray<PendingRequest>,
    commit: Commit
  ): Effect.fn.Return<number, SqlError.SqlError, Database | Sandbox> {
    const { connectionId } = decider
    const host: DecidingHost = { sandbox: yield* Sandbox, now, broke }
    const groups = yield* groupByKey(decider, requests)
    const keys = groups.flatMap(({ key }) => (key === null ? [] : [key]))
    const windows = new Map((yield* windowsOf({ connectionId, keys })).map((window) => [window.key, window]))
    const at = now()
    const isPlain = (request: PendingRequest): boolean => hand.isPlain(routeOf(decider, request), at)
    const plain: Array<GroupDecisions> = []
    const recorded: Array<GroupDecisions> = []
    for (const group of groups) {
      const decisions = new GroupDecisions(decider, group, group.key === null ? undefined : windows.get(group.key))
      if (group.requests.every(isPlain)) plain.push(decisions)
      else recorded.push(decisions)
    }
    // With an ordering all are committed together: otherwise a later event of an ordering key could be stored before an earlier one.
    const inOrder = requests.some((request) => request.inOrder)
    const made = new Map<string, DecidedJob>()
    let count = 0
    const done = ({ decided, group }: GroupDecisions): void => {
      count += decided.length
      if (inOrder) for (const one of decided) made.set(one.requestId, one)
      else commit(group.requests, decided)
    }
    yield* decidePlain(host, decider, plain, done)
    if (recorded.length > 0) yield* decideRecorded(host, decider, recorded, done)
    if (inOrder) {
      const those = requests.filter(({ id }) => made.has(id))
      commit(
        those,
        those.map(({ id }) => made.get(id)!)
      )
    }
    return count
  })
})
