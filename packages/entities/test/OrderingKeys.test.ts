import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import { maxBytes, QueueWorld } from "./QueueWorld.ts"
import { Random } from "./Random.ts"

// That nothing passes what stands before it in its line, and that nothing of a key goes beside another, is checked by the world at
// every start.

const minute = 60_000
/** As in `DeliveryWindow.ts`. */
const windowSize = 1_000

/** Lets everything come to its end, with a poll every half minute. */
const drain = (world: QueueWorld): void => {
  for (let polls = 0; world.pending > 0; polls++) {
    expect(polls, "something is never delivered").toBeLessThan(500)
    world.queue.wake()
    world.settle()
    world.now += minute / 2
  }
  world.settle()
}

const closed = (world: QueueWorld): void => {
  expect(world.pending).toBe(0)
  expect(world.permits.taken).toBe(0)
  expect(world.queue.underWay).toBe(0)
  expect(world.queue.nextAt).toBeNull()
}

const isFree = (world: QueueWorld): void => {
  closed(world)
  expect(world.otherBytes.hasRoom(maxBytes), "no memory is held").toBe(true)
}

const idsOf = (world: QueueWorld, key: string): ReadonlyArray<string> =>
  world.starts.filter(({ id }) => world.rows.get(id)!.key === key).map(({ id }) => id)

describe("Events of one ordering key", () => {
  it("Events of one ordering key are delivered one by one in order, beside those of other keys", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    for (let i = 0; i < 30; i++) for (const key of ["x", "y", "z"]) world.send("a", 1, { key })
    world.refillNow()
    world.go()
    expect(world.wire).toHaveLength(3)
    expect(new Set(world.wire.map(({ item }) => item.orderingKey))).toEqual(new Set(["x", "y", "z"]))
    world.settle()
    for (const key of ["x", "y", "z"]) {
      const sent = [...world.rows.values()].filter((row) => row.key === key).map(({ id }) => id)
      expect(idsOf(world, key)).toEqual(sent)
    }
    closed(world)
  })

  it("The next event of an ordering key starts only after the previous one is recorded", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    world.send("a", 2, { key: "x" })
    world.refillNow()
    world.end()
    expect(world.starts).toHaveLength(1)
    world.record()
    world.refillNow()
    expect(world.starts).toHaveLength(2)
  })

  it("Events of an ordering key are read a few at a time and do not delay other keys", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    world.send("a", 3_000, { key: "x" })
    world.refillNow()
    for (let i = 0; i < 200; i++) {
      world.send("a", 1, { key: `other-${i}` })
      world.refillNow()
      world.go()
      expect(world.inWindow).toBeLessThan(200)
      expect(idsOf(world, `other-${i}`), "at once").toHaveLength(1)
      world.end(world.wire.length - 1)
      world.record()
    }
    const reads = world.refills
    for (let i = 0; i < 320; i++) {
      world.end()
      world.record()
      world.refillNow()
    }
    expect(idsOf(world, "x").length).toBeGreaterThan(300)
    expect(world.refills - reads, "a read brings many").toBeLessThan(30)
  })

  it("The content of an ordered event that has just come is not read again", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    for (const key of ["x", "y", "x", "x"]) world.send("a", 1, { key })
    world.commit("a", 1, { key: "y" })
    world.settle()
    expect(world.noted, "all but the one without a notification").toBe(4)
    isFree(world)
  })

  it("The content of the ordered events that came first stays in memory while a backlog grows behind them", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    for (let i = 0; i < 2 * windowSize; i++) world.send("a", 1, { key: `key-${i % 40}` })
    world.settle()
    expect(world.noted).toBe(2 * windowSize)
    isFree(world)
  })

  it("An ordered event whose turn has not come for half a minute makes room for new ones", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    const rows = world.send("a", 4 * windowSize, { key: "y" })
    const isNoted = (id: string) => world.queue.memory.takeNoted(id) !== undefined
    const [early] = world.send("a", 1, { key: "x" })
    expect(isNoted(early!.id), "there is no room").toBe(false)
    world.now += minute
    const [late] = world.send("a", 1, { key: "x" })
    expect(isNoted(late!.id)).toBe(true)
    expect(rows.some(({ id }) => isNoted(id))).toBe(false)
  })

  it("Long backlogs of ordering keys delay no other key, and the content of what does not fit is not read again", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    const keysOf = (name: string) => Array.from({ length: 60 }, (_, i) => `${name}-${i}`)
    for (const key of keysOf("long")) world.send("a", 40, { key })
    world.refillNow()
    world.go()
    world.refillNow()
    for (const key of keysOf("new")) world.send("a", 1, { key })
    const before = world.now
    world.refillNow()
    world.go()
    world.refillNow()
    while (world.wire.length > 0) {
      world.end()
      world.record()
      world.refillNow()
      world.go()
    }
    expect(world.pending, "no key has waited").toBe(0)
    expect(world.now).toBe(before)
    expect(world.noted, "no content was read again").toBe(world.rows.size)
    isFree(world)
  })

  it("Ordered events that wait for their turn leave memory for others, and when their connection is paused or their rows change", () => {
    const world = new QueueWorld(["a", "b"], { order: "block", permits: 1 })
    world.send("a", 900, { key: "x" })
    world.send("b", 2_000)
    expect(world.inWindow, "the whole window").toBeGreaterThanOrEqual(windowSize - 1)
    world.settle()
    isFree(world)
    for (const change of ["pause", "reread"] as const) {
      const before = world.noted
      world.send("a", 5, { key: "y" })
      if (change === "reread") world.queue.reread()
      else {
        world.setConnectionQueue("a", "paused")
        world.setConnectionQueue("a", "open")
      }
      world.settle()
      expect(world.noted - before, change).toBe(0)
      isFree(world)
    }
  })

  it("Events behind a failed ordered event take no memory", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    world.send("a", 1, { key: "x" })
    world.refillNow()
    world.end(0, false)
    world.record(0, minute)
    world.send("a", 100, { key: "x" })
    world.refillNow()
    drain(world)
    expect(world.noted, "only the first").toBe(1)
    isFree(world)
  })

  it("Ordered events are found after a lost or late wake-up notification", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    const [first] = world.commit("a", 1, { key: "x" })
    const [second] = world.send("a", 1, { key: "x" })
    world.refillNow()
    expect(idsOf(world, "x")).toEqual([first!.id])
    world.settle()
    expect(idsOf(world, "x")).toEqual([first!.id, second!.id])
    world.commit("a", 1, { key: "x" })
    world.now += 5_000
    world.queue.wake()
    world.settle()
    closed(world)
  })

  it("Events of an ordering key wait for the delay of the first one", () => {
    const world = new QueueWorld(["a"], { order: "skip" })
    const [first] = world.send("a", 1, { key: "x", dueIn: 10 * minute })
    const [second] = world.send("a", 1, { key: "x" })
    drain(world)
    expect(idsOf(world, "x")).toEqual([first!.id, second!.id])
    closed(world)
  })

  it("Ordered events start exactly when their delay is over", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    const rows = ["x", "y"].flatMap((key) => world.send("a", 1, { key, dueIn: 10 * minute + 7 }))
    while (world.pending > 0) {
      world.queue.wake()
      world.settle()
      world.now += 2_000
    }
    expect(world.starts.map(({ at }) => at)).toEqual(rows.map(({ dueAt }) => dueAt))
  })
})

describe("Failed ordered event", () => {
  it("A failed event blocks only its own ordering key until its retry", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    const [first, second] = world.send("a", 2, { key: "x" })
    world.refillNow()
    world.end(0, false)
    world.record(0, 60 * minute)
    world.send("a", 500, { key: "y" })
    world.settle()
    expect(idsOf(world, "y")).toHaveLength(500)
    expect(idsOf(world, "x")).toEqual([first!.id])
    expect(world.inWindow).toBe(0)
    drain(world)
    expect(idsOf(world, "x")).toEqual([first!.id, first!.id, second!.id])
    closed(world)
  })

  it("Only the failed event of an ordering key waits in memory for an early retry", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    const [first, second] = world.send("a", 20, { key: "x" })
    world.refillNow()
    world.end(0, false)
    world.record(0, 5_000)
    expect(world.inWindow).toBe(1)
    expect(world.queue.nextAt).toBe(world.now + 5_000)
    world.settle()
    expect(idsOf(world, "x").slice(0, 3)).toEqual([first!.id, first!.id, second!.id])
    closed(world)
  })

  it("The next event passes a failed one that may be skipped, and the retry comes between later ones", () => {
    const world = new QueueWorld(["a"], { order: "skip" })
    const [first, second, third] = world.send("a", 3, { key: "x" })
    world.refillNow()
    world.end(0, false)
    world.record(0, 1_000)
    expect(idsOf(world, "x")).toEqual([first!.id, second!.id])
    // It is due while another is under way.
    world.now += 2_000
    world.queue.tick()
    expect(world.wire).toHaveLength(1)
    world.end()
    world.record()
    world.settle()
    expect(idsOf(world, "x")).toEqual([first!.id, second!.id, first!.id, third!.id])
    closed(world)
  })

  it("A thousand blocked ordering keys do not delay other keys", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    for (let i = 0; i < 1_100; i++) world.commit("a", 2, { key: `blocked-${i}` })
    world.now += 5_000
    world.queue.wake()
    const startedAt = world.now
    for (let step = 0; world.starts.length < 1_100; step++) {
      expect(step).toBeLessThan(20_000)
      world.now += 10
      world.queue.tick()
      world.stepRefill()
      while (world.wire.length > 0) world.end(0, false)
      while (world.recording.length > 0) world.record(0, 24 * 60 * minute)
    }
    expect(world.now - startedAt).toBeLessThan(minute)
    expect(world.inWindow).toBe(0)
    // Every poll that finds them waiting costs a bounded look, and a fresh key goes at once.
    for (let i = 0; i < 20; i++) {
      world.now += 500
      world.queue.wake()
      const [fresh] = world.send("a", 1, { key: `fresh-${i}` })
      for (let steps = 0; steps < 6; steps++) world.stepRefill()
      expect(idsOf(world, `fresh-${i}`)).toEqual([fresh!.id])
      world.end()
      world.record()
    }
  })
})

describe("Ordering key of a connection", () => {
  it("An ordering key waits while its connection is paused and then continues in order", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    const sent = world.send("a", 40, { key: "x" })
    world.refillNow()
    world.setConnectionQueue("a", "paused")
    world.end()
    world.record()
    world.send("a", 1, { key: "x" })
    world.settle()
    expect(world.starts).toHaveLength(1)
    expect(world.inWindow).toBe(0)
    world.setConnectionQueue("a", "open")
    world.settle()
    expect(idsOf(world, "x").slice(0, 40)).toEqual(sent.map(({ id }) => id))
    closed(world)
  })

  it("An ordering key waits for a running delivery after its connection was disabled", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    world.send("a", 2, { key: "x" })
    world.refillNow()
    world.setConnectionQueue("a", "cancelled")
    world.now += 1
    world.setConnectionQueue("a", "open")
    world.now += 1
    const [fresh] = world.send("a", 1, { key: "x" })
    world.refillNow()
    expect(world.starts).toHaveLength(1)
    world.end()
    world.record()
    world.settle()
    expect(idsOf(world, "x").at(-1)).toBe(fresh!.id)
    expect(world.starts).toHaveLength(2)
  })

  it("Ordered events that are not read any more are cancelled in SQL", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    world.commit("a", 5, { key: "x" })
    world.now += 5_000
    world.setConnectionQueue("a", "cancelled")
    expect(world.cancels).toEqual(new Set(["a"]))
    expect(world.starts).toHaveLength(0)
  })

  it("An ordering key continues in another process from SQL", () => {
    const world = new QueueWorld(["a"], { order: "block" })
    for (const key of ["x", "y"]) world.send("a", 50, { key })
    for (let i = 0; i < 10; i++) {
      world.refillNow()
      world.end()
      world.takeOver()
    }
    drain(world)
    closed(world)
  })
})

describe("Random interleavings of ordered events", () => {
  const seed = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 })))

  it.prop(
    "No event passes an earlier one of its ordering key, and nothing is left at the end",
    { seed },
    ({ seed }) => {
      const random = new Random(seed)
      const queues = ["a", "b"].slice(0, random.between(1, 2))
      const keys = Array.from({ length: random.pick([1, 3, 40, 2_000]) }, (_, i) => `k${i}`)
      const burst = random.chance(0.2) ? 60 : 5
      const world = new QueueWorld(queues, {
        permits: random.between(1, 80),
        order: random.pick(["block", "skip"] as const),
        ...(random.chance(0.3) ? { pacer: new Pacer(random.between(50, 400), "second") } : {})
      })
      const wakeUps: Array<string> = []
      const steps: ReadonlyArray<readonly [weight: number, step: () => void]> = [
        [
          8,
          () => {
            const connection = random.pick(queues)
            for (let i = random.between(1, burst); i > 0; i--) {
              const options = random.chance(0.1)
                ? { dueIn: random.between(0, 90_000) }
                : random.chance(0.1)
                  ? {}
                  : { key: random.pick(keys) }
              wakeUps.push(...world.commit(connection, 1, options).map(({ id }) => id))
            }
          }
        ],
        [
          8,
          () => {
            const told = wakeUps.splice(0, random.between(1, wakeUps.length))
            if (random.chance(0.1)) return
            const items = told.map((id) => world.itemOf({ ...world.rows.get(id)!, attempts: 0, place: null }))
            world.queue.offer(items, random.chance(0.1))
          }
        ],
        [
          12,
          () => world.end(random.between(0, 5), random.chance(0.7), random.pick(["answered", "overloaded"] as const))
        ],
        [12, () => world.record(random.between(0, 5), random.pick([10, 1_000, 40_000, 600_000]))],
        [12, () => world.stepRefill()],
        [6, () => world.marked(0, random.chance(0.9))],
        [4, () => world.queue.tick()],
        [
          4,
          () => {
            world.now += random.pick([1, 50, 1_000, 20_000])
            world.queue.tick()
          }
        ],
        [2, () => world.queue.wake()],
        [1, () => world.failRefill()],
        [
          1,
          () =>
            world.setConnectionQueue(random.pick(queues), random.pick(["open", "open", "paused", "cancelled"] as const))
        ],
        [1, () => (random.chance(0.3) ? world.takeOver() : undefined)],
        [1, () => world.otherBytes.hold(random.between(0, maxBytes / 4))]
      ]
      const weights = steps.reduce((sum, [weight]) => sum + weight, 0)
      for (let i = 0; i < 300; i++) {
        let at = random.between(1, weights)
        for (const [weight, step] of steps) {
          at -= weight
          if (at > 0) continue
          step()
          break
        }
        world.go()
      }
      world.otherBytes.release(maxBytes * 1_000)
      for (const connection of queues) world.setConnectionQueue(connection, "open")
      drain(world)
      closed(world)
    },
    { arbitrary: { runs: 100 } }
  )
})
