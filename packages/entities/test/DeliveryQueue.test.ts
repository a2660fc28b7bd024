import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import { maxBytes, QueueWorld } from "./QueueWorld.ts"
import { Random } from "./Random.ts"

const windowSize = 1_000
const maxConcurrent = 50

/** How many of the first `first` starts each connection got. */
const shares = (world: QueueWorld, first = world.starts.length): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { lane } of world.starts.slice(0, first)) counts[lane] = (counts[lane] ?? 0) + 1
  return counts
}

/** Delivers `count` events, one after the other, 5 ms each. */
const deliver = (world: QueueWorld, count: number): void => {
  const until = world.starts.length + count
  for (let step = 0; world.starts.length < until; step++) {
    expect(step, "nothing starts any more").toBeLessThan(20 * count)
    world.now += 5
    world.end()
    world.record()
    world.stepRefill()
    world.queue.tick()
  }
}

const closed = (world: QueueWorld): void => {
  expect(world.permits.taken).toBe(0)
  expect(world.otherBytes.hasRoom(maxBytes), "no memory is held").toBe(true)
  expect(world.queue.nextAt).toBeNull()
  expect(world.queue.underWay).toBe(0)
}

describe("Connection queues", () => {
  it("Connection queues take turns, whatever their backlogs are", () => {
    const world = new QueueWorld(["a", "b", "c"], { permits: 1 })
    world.send("a", 300)
    world.send("b", 30)
    world.send("c", 30)
    deliver(world, 88)
    const counts = shares(world, 89)
    for (const lane of ["a", "b", "c"]) expect(Math.abs(counts[lane]! - 30)).toBeLessThanOrEqual(2)
    world.settle()
    expect(world.pending).toBe(0)
    closed(world)
  })

  it("A backlog that came first does not keep other connection queues out of a full window", () => {
    const world = new QueueWorld(["a", "b", "c"], { permits: 1 })
    world.send("a", 10 * windowSize)
    world.send("b", windowSize)
    world.send("c", windowSize)
    deliver(world, 600)
    const counts = shares(world)
    for (const lane of ["a", "b", "c"]) expect(Math.abs(counts[lane]! - 200)).toBeLessThanOrEqual(20)
    expect(world.inWindow).toBeLessThanOrEqual(windowSize)
  })

  it("A connection queue gets its turn again when it is resumed beside a backlog", () => {
    const world = new QueueWorld(["a", "b"], { permits: 1 })
    world.setConnectionQueue("b", "paused")
    world.send("b", 2 * windowSize)
    world.send("a", 10 * windowSize)
    deliver(world, 100)
    world.setConnectionQueue("b", "open")
    const before = world.starts.length
    deliver(world, 600)
    const after = world.starts.slice(before).filter(({ lane }) => lane === "b").length
    expect(Math.abs(after - 300)).toBeLessThanOrEqual(60)
  })

  it("An event waits for its due time", () => {
    const world = new QueueWorld(["a"])
    world.send("a", 1, { dueIn: 500 })
    expect(world.starts).toHaveLength(0)
    expect(world.queue.nextAt).toBe(world.now + 500)
    world.now += 500
    world.queue.tick()
    expect(world.starts).toHaveLength(1)
  })

  it("An event that is due after the window's time range stays in SQL", () => {
    const world = new QueueWorld(["a"])
    const [row] = world.send("a", 1, { dueIn: 60_000 })
    expect(world.queue.memory.isKnown(row!.id)).toBe(false)
    expect(world.queue.nextAt).toBeNull()
    world.now += 60_000
    world.queue.wake()
    world.settle()
    expect(row!.state).toBe("DONE")
  })
})

describe("Window of the delivery queue", () => {
  it("The window has a maximum size and is refilled from SQL until nothing is left", () => {
    const world = new QueueWorld(["a", "b"])
    for (let i = 0; i < 20; i++) {
      world.send("a", 400)
      world.send("b", 50)
      expect(world.inWindow).toBeLessThanOrEqual(windowSize)
    }
    expect(world.wire).toHaveLength(maxConcurrent)
    world.settle()
    expect(world.starts).toHaveLength(20 * 450)
    expect(world.pending).toBe(0)
    expect(world.refills, "a refill brings many").toBeLessThan(40)
    closed(world)
  })

  it("A window without free memory does not read the same rows again and again", () => {
    const world = new QueueWorld(["a"])
    // Another destination holds all memory.
    world.otherBytes.hold(maxBytes)
    world.send("a", 500)
    const before = world.refills
    for (let i = 0; i < 100; i++) {
      world.stepRefill()
      world.now += 1
      world.queue.tick()
    }
    expect(world.refills - before).toBeLessThanOrEqual(4)
    world.otherBytes.release(maxBytes)
    world.settle()
    expect(world.pending).toBe(0)
    closed(world)
  })

  it("The window holds few events while others use all the memory", () => {
    const world = new QueueWorld(["a"])
    world.otherBytes.hold(maxBytes)
    world.send("a", 200)
    for (let step = 0; world.pending > 0; step++) {
      expect(step, "nothing is delivered any more").toBeLessThan(2_000)
      expect(world.inWindow + world.queue.underWay).toBeLessThanOrEqual(16)
      world.end()
      world.record()
      world.stepRefill()
      world.now += 20
      world.queue.tick()
    }
    world.otherBytes.release(maxBytes)
    world.settle()
    closed(world)
  })

  it("A retry without room is found again, although a refill was in progress", () => {
    const world = new QueueWorld(["a", "b"], { permits: 1 })
    const [row] = world.send("a", 1)
    world.end(0, false)
    world.queue.wake()
    world.stepRefill()
    // The refill has read: the row was known. Now the window fills up, and the retry is turned away.
    world.others.take()
    world.send("a", 20)
    world.otherBytes.hold(maxBytes)
    world.record(0, 10)
    expect(world.queue.memory.isKnown(row!.id)).toBe(false)
    world.otherBytes.release(maxBytes)
    world.others.release()
    world.settle()
    expect(row!.state).toBe("DONE")
  })

  it("The queue reads SQL again after a failed read", () => {
    const world = new QueueWorld(["a"])
    world.commit("a", 3)
    world.queue.wake()
    world.failRefill()
    expect(world.queue.nextAt).toBe(world.now + 100)
    world.settle()
    expect(world.pending).toBe(0)
  })
})

describe("Change of settings", () => {
  it("A paused connection queue stops, and its events are delivered once it is resumed", () => {
    const world = new QueueWorld(["a", "b"], { permits: 4 })
    world.send("a", 100)
    world.send("b", 100)
    world.setConnectionQueue("a", "paused")
    const before = shares(world)["a"]
    world.settle()
    expect(shares(world)["a"]).toBe(before)
    expect(shares(world)["b"]).toBe(100)
    closed(world)
    world.setConnectionQueue("a", "open")
    world.settle()
    expect(world.pending).toBe(0)
  })

  it("A cancellation applies to earlier events, even if the connection is enabled again at once", () => {
    const world = new QueueWorld(["a"], { permits: 1 })
    world.send("a", 100)
    world.setConnectionQueue("a", "cancelled")
    world.setConnectionQueue("a", "open")
    world.now += 1
    const [later] = world.send("a", 1)
    world.settle()
    expect(world.starts).toHaveLength(2)
    expect(later!.state).toBe("DONE")
    expect(world.pending).toBe(0)
  })

  for (const change of [
    "paused",
    "cancelled",
    "cancelled and open again",
    "new rate",
    "no lease",
    "stopped"
  ] as const) {
    it(`A change (${change}) applies to a start that is being marked`, () => {
      const world = new QueueWorld(["a"], { pacer: new Pacer(5_000, "second") })
      world.send("a", 20)
      expect(world.marks).toHaveLength(20)
      expect(world.starts).toHaveLength(0)
      if (change === "paused") world.setConnectionQueue("a", "paused")
      else if (change === "new rate") world.setPacer(new Pacer(1, "second"))
      else if (change === "no lease") world.lease = false
      else if (change === "stopped") {
        world.queue.stop()
        world.stopped = true
      } else {
        world.setConnectionQueue("a", "cancelled")
        if (change !== "cancelled") world.setConnectionQueue("a", "open")
      }
      while (world.marks.length > 0) world.marked()
      expect(world.starts.length).toBeLessThanOrEqual(change === "new rate" ? 1 : 0)
      if (change === "paused" || change === "no lease") {
        world.lease = true
        world.setConnectionQueue("a", "open")
        world.settle()
        expect(world.pending).toBe(0)
      }
      if (change.startsWith("cancelled")) world.settle()
      if (change !== "new rate") closed(world)
    })
  }
})

describe("Deliveries that are stored as in progress", () => {
  it("A delivery starts once it is stored as in progress, and does not delay others", () => {
    const world = new QueueWorld(["a"], { writtenDown: (id) => id === heavy })
    const [heavy, light] = world.commit("a", 2).map(({ id }) => id)
    world.queue.offer(
      [heavy!, light!].map((id) => world.itemOf(world.rows.get(id)!)),
      false
    )
    expect(world.starts.map(({ id }) => id)).toEqual([light])
    world.taken()
    expect(world.starts.map(({ id }) => id)).toEqual([light, heavy])
    world.settle()
    expect(world.pending).toBe(0)
    closed(world)
  })

  it("A delivery that does not start gives everything back and comes again", () => {
    const world = new QueueWorld(["a"], { writtenDown: () => true, pacer: new Pacer(1_000, "second") })
    world.send("a", 10)
    while (world.takes.length > 0) world.taken(0, false)
    expect(world.starts).toHaveLength(0)
    expect([...world.inHand]).toEqual([])
    world.settle()
    expect(world.starts).toHaveLength(10)
    expect(world.pending).toBe(0)
    closed(world)
  })
})

describe("Destination with a rate limit", () => {
  it("A rate-limited destination waits if a start cannot be marked, and loses nothing", () => {
    const world = new QueueWorld(["a"], { pacer: new Pacer(50, "second") })
    world.send("a", 60)
    for (let i = 0; i < 300; i++) {
      world.marked(0, false)
      world.refillNow()
      world.now += 5
      world.queue.tick()
    }
    expect(world.starts).toHaveLength(0)
    world.settle()
    expect(world.starts).toHaveLength(60)
    expect(world.pending).toBe(0)
    closed(world)
  })

  it("A rate-limited destination shares its rate equally among connections with a backlog", () => {
    const queues = ["a", "b", "c", "d", "e"]
    const world = new QueueWorld(queues, { pacer: new Pacer(20, "second") })
    world.send("a", 10_000)
    for (const lane of queues.slice(1)) world.send(lane, 1_000)
    const began = world.now
    while (world.now < began + 50_000) {
      while (world.marks.length > 0) world.marked()
      while (world.wire.length > 0) world.end()
      while (world.recording.length > 0) world.record()
      if (world.refill !== null) world.refillNow()
      world.now = Math.max(world.now + 1, Math.min(world.queue.nextAt ?? 0, world.now + 100))
      world.queue.tick()
    }
    expect(world.starts.length).toBeGreaterThanOrEqual(950)
    const counts = shares(world)
    for (const lane of queues) expect(Math.abs(counts[lane]! - world.starts.length / 5)).toBeLessThanOrEqual(10)
  })
})

describe("Delivery queue without the lease", () => {
  it("A queue without the lease starts nothing and checks the lease again", () => {
    const world = new QueueWorld(["a"])
    world.lease = false
    world.send("a", 5)
    expect(world.starts).toHaveLength(0)
    expect(world.queue.nextAt).toBe(world.now + 100)
    world.lease = true
    world.settle()
    expect(world.starts).toHaveLength(5)
  })
})

describe("Stopped delivery queue", () => {
  it("A stopped queue starts nothing more and lets running deliveries end", () => {
    const world = new QueueWorld(["a"])
    world.send("a", 200)
    world.queue.stop()
    world.stopped = true
    expect(world.queue.nextAt).toBeNull()
    expect(world.queue.underWay).toBe(maxConcurrent)
    world.send("a", 10)
    while (world.wire.length > 0) world.end(0, world.wire.length % 2 === 0)
    expect(world.queue.underWay).toBe(maxConcurrent)
    while (world.recording.length > 0) world.record()
    expect(world.starts).toHaveLength(maxConcurrent)
    closed(world)
  })
})

describe("Concurrency limit of the queue", () => {
  it("A set limit applies, and other changes keep the limit that was learned from the target", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 3 })
    world.send("a", 400)
    expect(world.wire).toHaveLength(3)
    world.setMaxConcurrency(200)
    expect(world.wire, "as many as are begun in one go").toHaveLength(103)
    world.go()
    expect(world.wire).toHaveLength(200)
    world.end(0, true, "overloaded")
    const { limit } = world.queue
    expect(limit).toBeLessThan(200)
    world.setConnectionQueue("a", "open")
    expect(world.queue.limit).toBe(limit)
    world.setMaxConcurrency(null)
    expect(world.queue.limit).toBe(maxConcurrent)
    world.settle()
    closed(world)
  })

  it("The limit grows while latency stays the same, and the window is filled for as many", () => {
    const world = new QueueWorld(["a"])
    world.send("a", 30_000)
    let most = 0
    while (world.pending > 0) {
      world.now += 1_000
      for (let left = world.wire.length; left > 0; left--) world.end()
      while (world.recording.length > 0) world.record()
      for (let reads = 0; reads < 5; reads++) {
        world.go()
        while (world.refill !== null) world.refillNow()
      }
      most = Math.max(most, world.wire.length)
    }
    expect(most, "what is on the wire hides nothing that waits behind it").toBe(2_000)
    expect(world.now - 1_790_000_000_000).toBeLessThan(40_000)
    closed(world)
  })

  it("The limit falls when the target stops answering, and grows again afterwards", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 500 })
    world.send("a", 3_000)
    world.go()
    expect(world.wire).toHaveLength(500)
    world.now += 30_000
    for (let left = 500; left > 0; left--) world.end(0, true, "overloaded")
    expect(world.queue.limit).toBe(4)
    expect(world.wire.length).toBeLessThanOrEqual(500)
    while (world.recording.length > 0) world.record()
    world.settle()
    expect(world.pending).toBe(0)
    expect(world.queue.limit).toBe(500)
    closed(world)
  })

  it("The limit ignores deliveries that never reached the target", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 10 })
    world.send("a", 100)
    for (let i = 0; i < 50; i++) world.end(0, true, "unsent")
    expect(world.queue.limit).toBe(10)
  })
})

describe("Permits shared by destinations", () => {
  it("Shared permits go round among the destinations that can use them", () => {
    const world = new QueueWorld(["a"], { permits: 1 })
    world.others.take()
    world.send("a", 3)
    expect(world.starts).toHaveLength(0)
    expect(world.queue.nextAt).toBe(Number.POSITIVE_INFINITY)
    world.others.release()
    expect(world.starts).toHaveLength(1)
    world.settle()
    closed(world)
  })
})

describe("Random interleavings of the delivery queue", () => {
  const seed = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 })))

  it.prop(
    "No attempt is made twice, no forbidden delivery starts, and nothing is left at the end",
    { seed },
    ({ seed }) => {
      const random = new Random(seed)
      const queues = ["a", "b", "c", "d"].slice(0, random.between(1, 4))
      const paced = random.chance(0.4)
      const rate = () => new Pacer(random.between(1, 400), "second")
      const burst = random.chance(0.3) ? 700 : 12
      /** Whether some deliveries are written down before they begin. */
      const isSome = random.chance(0.5)
      const world = new QueueWorld(queues, {
        permits: random.between(1, 80),
        writtenDown: (eventId) => isSome && eventId.charCodeAt(eventId.length - 1) % 3 === 0,
        ...(paced ? { pacer: rate() } : {})
      })
      /** Events committed whose wake-up notification is still on its way. */
      const wakeUps: Array<string> = []
      /** Whether something happened that only the poller can find. */
      let excused = false

      const steps: ReadonlyArray<readonly [weight: number, step: () => void]> = [
        [8, () => wakeUps.push(...world.commit(random.pick(queues), random.between(1, burst)).map((row) => row.id))],
        [
          8,
          () => {
            // A notification tells what was committed, however old that is by now; some come twice.
            const count = random.between(1, wakeUps.length)
            const told = random.chance(0.9) ? wakeUps.splice(0, count) : wakeUps.slice(0, count)
            const items = told.map((id) => {
              const row = world.rows.get(id)!
              return world.itemOf({ ...row, attempts: 0, dueAt: row.createdAt })
            })
            world.queue.offer(items, random.chance(0.1))
          }
        ],
        [1, () => (excused = wakeUps.splice(0, random.between(0, 3)).length > 0 || excused)],
        [20, () => world.end(random.between(0, Math.max(0, world.wire.length - 1)), random.chance(0.7))],
        [20, () => world.record(random.between(0, Math.max(0, world.recording.length - 1)), random.between(0, 2_000))],
        [20, () => world.marked(random.between(0, Math.max(0, world.marks.length - 1)), random.chance(0.9))],
        [20, () => world.taken(random.between(0, Math.max(0, world.takes.length - 1)), random.chance(0.9))],
        [12, () => world.stepRefill()],
        [1, () => world.failRefill()],
        [2, () => world.queue.wake()],
        [
          2,
          () =>
            world.setConnectionQueue(random.pick(queues), random.pick(["open", "open", "paused", "cancelled"] as const))
        ],
        [1, () => world.setDestination(random.pick(["open", "open", "open", "cancelled"] as const))],
        [1, () => paced && world.setPacer(rate())],
        [1, () => (world.lease = random.chance(0.7))],
        [
          1,
          () => {
            // Another runner, which has had the shard for a moment, has made the next attempt.
            const row = random.pick([...world.rows.values()])
            if (row?.state !== "PENDING") return
            row.attempts++
            excused = true
            if (random.chance(0.5)) row.state = "DONE"
          }
        ],
        [10, () => (world.now += random.between(0, 200))],
        [10, () => world.queue.tick()]
      ]
      const wheel = steps.flatMap(([weight, step]) => Array.from({ length: weight }, () => step))

      for (let i = 0; i < 600; i++) {
        if (world.rows.size > 0 || i === 0) random.pick(wheel)()
        else steps[0]![1]()
        expect(world.permits.taken).toBe(world.wire.length + world.marks.length + world.takes.length)
        expect(world.queue.underWay).toBe(world.permits.taken + world.recording.length)
        if (i % 50 === 0) expect(world.inWindow).toBeLessThanOrEqual(windowSize)
      }

      world.now++
      world.lease = true
      world.setDestination("open")
      for (const lane of queues) world.setConnectionQueue(lane, "open")
      world.queue.offer(
        wakeUps.map((id) => world.itemOf(world.rows.get(id)!)),
        false
      )
      world.settle()
      if (excused) {
        world.queue.wake()
        world.settle()
      }
      expect(world.pending).toBe(0)
      closed(world)
    },
    { arbitrary: { runs: 60 } }
  )
})
