import { expect, it, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { Sharding, type ShardId } from "effect/cluster"
import { SqlClient, Statement } from "effect/sql"
import { TestClock } from "effect/testing"
import { next } from "@tidegate/runtime/TestSignal"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import * as Poller from "../src/dispatch/Poller.ts"
import { OwnRuns, RunsInHand } from "../src/Workflow/RunsInHand.ts"

const own = new RunsInHand()

const turns = Effect.forEach([1, 2, 3], () => Effect.promise(() => new Promise((resolve) => setImmediate(resolve))))

/** The time of the machine is the test's, less what it was set back by. What sleeps does not notice. */
const setBackBy = (ms: () => number, clock: Clock.Clock): Clock.Clock => ({
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - ms(),
  currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now - ms()),
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() - BigInt(ms()) * 1_000_000n,
  currentTimeNanos: Effect.map(clock.currentTimeNanos, (now) => now - BigInt(ms()) * 1_000_000n),
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
  monotonicTimeNanos: clock.monotonicTimeNanos,
  sleep: (duration) => clock.sleep(duration)
})

/** A sweep over the shards `held`, which may change; `half` lets half a second pass and answers how often it has looked by then. */
const sweeping = Effect.fnUntraced(function* (held: ReadonlySet<number>) {
  let looks = 0
  let setBack = 0
  const clock = setBackBy(() => setBack, yield* Clock.Clock)
  const woken: Array<string> = []
  const client = (id: string) => ({ Wake: () => Effect.sync(() => void woken.push(id)) })
  const sharding = {
    hasShardId: ({ id }: ShardId.ShardId) => held.has(id),
    makeClient: () => Effect.succeed(client)
  } as unknown as Sharding.Sharding["Service"]
  const first = next("poll")
  yield* Layer.build(Poller.layer).pipe(
    Effect.provideService(Sharding.Sharding, sharding),
    Effect.provideService(OwnRuns, own),
    Effect.provideService(Clock.Clock, clock),
    Effect.provideService(Statement.CurrentTransformer, (statement) => {
      looks++
      return Effect.succeed(statement)
    })
  )
  yield* Effect.promise(() => first)
  yield* turns
  const half = Effect.gen(function* () {
    const before = looks
    const ended = next("poll")
    yield* TestClock.adjust("500 millis")
    yield* turns
    if (looks > before) yield* Effect.promise(() => ended)
    yield* turns
    return looks
  })
  const setBackTo = (ms: number): void => {
    setBack = ms
  }
  return { woken, half, halves: (count: number) => Effect.replicateEffect(half, count), setBackTo }
})

// Partitions are made for the days around the clock's.
const world = Layer.provide(ControlPlane.layer, Layer.effectDiscard(TestClock.setTime(Date.now())))

layer(world)("Poller", (it) => {
  it.effect("The poller reads every two seconds while nothing is due, and at once for new shards", () =>
    Effect.gen(function* () {
      const held = new Set([1])
      const { half, halves } = yield* sweeping(held)
      expect(yield* halves(9)).toEqual([1, 1, 1, 2, 2, 2, 2, 3, 3])
      held.add(2)
      expect(yield* half).toBe(4)
      held.delete(1)
      expect(yield* halves(4)).toEqual([4, 4, 4, 5])
    })
  )

  it.effect("The poller reads when the earliest row is due, and twice a second while it finds rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { halves, woken } = yield* sweeping(new Set([7]))
      const due = new Date((yield* Clock.currentTimeMillis) + 3_000)
      yield* sql`insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
        values ('evt_1', ${ControlPlane.team}, 7, 'des_1', 'web_1', ${due}), ('evt_2', ${ControlPlane.team}, 8, 'des_2', 'web_2', ${due})`
      expect(yield* halves(6)).toEqual([1, 1, 1, 2, 2, 2])
      expect(woken).toEqual([])
      expect(yield* halves(3)).toEqual([3, 4, 5])
      expect(woken).toEqual(["des_1", "des_1", "des_1"])
      yield* sql`delete from deliveries`
      expect(yield* halves(5)).toEqual([6, 6, 6, 6, 7])
      expect(woken.length).toBe(3)
    })
  )

  it.effect("The poller reads at once when the clock was set back", () =>
    Effect.gen(function* () {
      const { half, halves, setBackTo } = yield* sweeping(new Set([11]))
      expect(yield* halves(5)).toEqual([1, 1, 1, 2, 2])
      setBackTo(3_600_000)
      expect(yield* half).toBe(3)
      expect(yield* halves(4)).toEqual([3, 3, 3, 4])
    })
  )

  it.effect("The poller wakes connections with routing jobs", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const at = new Date((yield* Clock.currentTimeMillis) - 1_000)
      yield* sql`insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at)
        values (9, 'web_9', 'req_9', ${ControlPlane.team}, 'src_9', ${at})`
      const { woken } = yield* sweeping(new Set([9]))
      expect(woken).toEqual(["web_9"])
    })
  )

  it.effect("The poller skips runs of its own process, and reads in time for one that begins to wait", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { half, halves, woken } = yield* sweeping(new Set([10]))
      const now = yield* Clock.currentTimeMillis
      yield* sql`insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at) values
        ('wfr_1', ${ControlPlane.team}, 10, 'wfl_1', ${new Date(now - 60_000)}),
        ('wfr_2', ${ControlPlane.team}, 10, 'wfl_1', ${new Date(now + 1_000)})`
      own.add("wfr_1")
      expect(yield* halves(4)).toEqual([1, 1, 1, 2])
      expect(woken).toEqual(["wfl_1"])
      own.add("wfr_2")
      // What it has just found it looks for once more.
      expect(yield* halves(2)).toEqual([3, 3])
      expect(woken).toEqual(["wfl_1"])

      yield* sql`update workflow_queue set due_at = ${new Date((yield* Clock.currentTimeMillis) + 600)} where run_id = 'wfr_2'`
      own.delete("wfr_2")
      own.waits((yield* Clock.currentTimeMillis) + 600)
      expect(yield* half).toBe(3)
      expect(yield* half).toBe(4)
      expect(woken).toEqual(["wfl_1", "wfl_1"])
      yield* sql`delete from workflow_queue`
      own.delete("wfr_1")
    })
  )
})

it("The poller uses a tenth of the time, but pauses for at most three seconds after a look that a stalled database held up", () => {
  expect([0, 1, 49, 50, 100, 299, 300, 6_000, 60_000].map(Poller.pauseAfter)).toEqual([
    500, 499, 490, 500, 1_000, 2_990, 3_000, 3_000, 3_000
  ])
})
