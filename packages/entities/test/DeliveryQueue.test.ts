import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import { maxBytes, QueueWorld } from "./QueueWorld.ts"
import { Random } from "./Random.ts"

const windowSize = 1_000
const maxConcurrent = 50

/** How many of the first `first` starts each lane got. */
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

describe("lanes", () => {
  it("take turns, whatever their backlogs", () => {
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

  it("are not kept out of a full window by a backlog that was there first", () => {
    const world = new QueueWorld(["a", "b", "c"], { permits: 1 })
    world.send("a", 10 * windowSize)
    world.send("b", windowSize)
    world.send("c", windowSize)
    deliver(world, 600)
    const counts = shares(world)
    for (const lane of ["a", "b", "c"]) expect(Math.abs(counts[lane]! - 200)).toBeLessThanOrEqual(20)
    expect(world.inWindow).toBeLessThanOrEqual(windowSize)
  })

  it("come back to their turn when they are opened beside a backlog", () => {
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

  it("wait for their time", () => {
    const world = new QueueWorld(["a"])
    world.send("a", 1, { dueIn: 500 })
    expect(world.starts).toHaveLength(0)
    expect(world.queue.nextAt).toBe(world.now + 500)
    world.now += 500
    world.queue.tick()
    expect(world.starts).toHaveLength(1)
  })

  it("leave to SQL what is due later than a window looks ahead", () => {
    const world = new QueueWorld(["a"])
    const [row] = world.send("a", 1, { dueIn: 60_000 })
    expect(world.queue.isKnown(row!.id)).toBe(false)
    expect(world.queue.nextAt).toBeNull()
    world.now += 60_000
    world.queue.wake()
    world.settle()
    expect(row!.state).toBe("DONE")
  })
})

describe("the window", () => {
  it("is bounded, and refilled from SQL until nothing is left", () => {
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

  it("does not read again and again what finds no room", () => {
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

  it("has few events in memory when others hold it all, those on the wire included", () => {
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

  it("finds a retry again that it had no room for, although a refill was under way", () => {
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
    expect(world.queue.isKnown(row!.id)).toBe(false)
    world.otherBytes.release(maxBytes)
    world.others.release()
    world.settle()
    expect(row!.state).toBe("DONE")
  })

  it("asks SQL again when it could not be read", () => {
    const world = new QueueWorld(["a"])
    world.commit("a", 3)
    world.queue.wake()
    world.failRefill()
    expect(world.queue.nextAt).toBe(world.now + 100)
    world.settle()
    expect(world.pending).toBe(0)
  })
})

describe("a change", () => {
  it("stops a lane that is paused; what waits is delivered once it is opened", () => {
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

  it("cancels what was created before it, also when the lane is open again at once", () => {
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
    it(`(${change}) that comes while a start is being marked holds for it`, () => {
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

describe("deliveries that are written down", () => {
  it("begin once they are, and let nobody wait who is not", () => {
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

  it("give back what they have taken when they do not begin, and come again", () => {
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

describe("a paced destination", () => {
  it("waits for the database when a start cannot be marked, and loses nothing", () => {
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

  it("shares its rate equally among connections with a backlog", () => {
    const lanes = ["a", "b", "c", "d", "e"]
    const world = new QueueWorld(lanes, { pacer: new Pacer(20, "second") })
    world.send("a", 10_000)
    for (const lane of lanes.slice(1)) world.send(lane, 1_000)
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
    for (const lane of lanes) expect(Math.abs(counts[lane]! - world.starts.length / 5)).toBeLessThanOrEqual(10)
  })
})

describe("without the lease", () => {
  it("nothing starts, and it is looked at again", () => {
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

describe("a queue that is stopped", () => {
  it("starts nothing more and lets what is under way end", () => {
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

describe("the limit", () => {
  it("is what the operator has set, and a change of anything else leaves alone what has been found out", () => {
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

  it("grows while answers come in the same time, and the window is filled for as many", () => {
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

  it("falls when the target does not answer any more, and grows again when it does", () => {
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

  it("learns nothing from what never reached the target", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 10 })
    world.send("a", 100)
    for (let i = 0; i < 50; i++) world.end(0, true, "unsent")
    expect(world.queue.limit).toBe(10)
  })
})

describe("slots that destinations share", () => {
  it("go round, and to whoever can use them", () => {
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

describe("whatever the interleaving", () => {
  const seed = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 })))

  it.prop(
    "no attempt is made twice, nothing starts that may not, and in the end nothing is left",
    { seed },
    ({ seed }) => {
      const random = new Random(seed)
      const lanes = ["a", "b", "c", "d"].slice(0, random.between(1, 4))
      const paced = random.chance(0.4)
      const rate = () => new Pacer(random.between(1, 400), "second")
      const burst = random.chance(0.3) ? 700 : 12
      /** Whether some deliveries are written down before they begin. */
      const isSome = random.chance(0.5)
      const world = new QueueWorld(lanes, {
        permits: random.between(1, 80),
        writtenDown: (eventId) => isSome && eventId.charCodeAt(eventId.length - 1) % 3 === 0,
        ...(paced ? { pacer: rate() } : {})
      })
      /** Events committed whose hint is still on its way. */
      const hints: Array<string> = []
      /** Whether something happened that only a sweep can find. */
      let excused = false

      const steps: ReadonlyArray<readonly [weight: number, step: () => void]> = [
        [8, () => hints.push(...world.commit(random.pick(lanes), random.between(1, burst)).map((row) => row.id))],
        [
          8,
          () => {
            // A hint tells what was committed, however old that is by now; some come twice.
            const count = random.between(1, hints.length)
            const told = random.chance(0.9) ? hints.splice(0, count) : hints.slice(0, count)
            const items = told.map((id) => {
              const row = world.rows.get(id)!
              return world.itemOf({ ...row, attempts: 0, dueAt: row.createdAt })
            })
            world.queue.offer(items, random.chance(0.1))
          }
        ],
        [1, () => (excused = hints.splice(0, random.between(0, 3)).length > 0 || excused)],
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
            world.setConnectionQueue(random.pick(lanes), random.pick(["open", "open", "paused", "cancelled"] as const))
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
      for (const lane of lanes) world.setConnectionQueue(lane, "open")
      world.queue.offer(
        hints.map((id) => world.itemOf(world.rows.get(id)!)),
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
