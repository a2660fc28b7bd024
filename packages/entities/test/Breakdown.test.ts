import { describe, expect, it, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { TestClock } from "effect/testing"
import { connectorOf } from "@tidegate/connectors/Connectors"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Journal } from "@tidegate/storage/Journal"
import { attemptRecord } from "../../storage/test/attempts.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import {
  type Act,
  Acts,
  answer,
  Calls,
  linear,
  logged,
  recorded,
  released,
  turn,
  waiting,
  worldWith
} from "./DestinationWorld.ts"
import { maxBytes, QueueWorld } from "./QueueWorld.ts"

/** Something throws where nothing should: it costs an attempt, or a while, and never a permit. */

const closed = (world: QueueWorld): void => {
  expect(world.permits.taken).toBe(0)
  expect(world.otherBytes.hasRoom(maxBytes), "no memory is held").toBe(true)
  expect(world.queue.nextAt).toBeNull()
  expect(world.queue.underWay).toBe(0)
  expect(world.pending).toBe(0)
}

describe("Delivery queue whose host throws", () => {
  const pacers: ReadonlyArray<readonly [name: string, make: () => Pacer | undefined]> = [
    ["unpaced", () => undefined],
    ["paced", () => new Pacer(100, "second")]
  ]
  for (const [name, make] of pacers) {
    it(`A queue whose host throws gets its permits and memory back, and delivers later (${name})`, () => {
      const pacer = make()
      const world = new QueueWorld(["a", "b"], { permits: 3, ...(pacer === undefined ? {} : { pacer }) })
      world.breaks = 10
      world.send("a", 20)
      world.send("b", 20)
      world.settle()
      expect(world.breakdowns).toHaveLength(10)
      expect(world.starts).toHaveLength(40)
      closed(world)
    })
  }

  it("A queue whose host throws reads SQL again after a pause, not at once", () => {
    const world = new QueueWorld(["a"])
    world.breaks = 3
    world.send("a", 1)
    const { now, refills } = world
    expect(world.refill).toBeNull()
    expect(world.queue.nextAt!).toBeGreaterThanOrEqual(now + 1_000)
    world.settle()
    expect(world.refills).toBeLessThanOrEqual(refills + 3)
    expect(world.starts).toHaveLength(1)
    closed(world)
  })

  it("A queue whose host throws does not affect another one that waits for a permit", () => {
    const world = new QueueWorld(["a"], { permits: 1 })
    world.send("a", 1)
    // Called with every permit that comes back, as a queue's own tick is.
    let told = 0
    expect(world.permits.key(() => told++).take()).toBe(false)
    world.send("a", 1)
    world.breaks = 1
    world.end()
    expect(told).toBe(1)
    world.record()
    world.settle()
    closed(world)
  })

  it("A queue continues after a tick that threw", () => {
    const world = new QueueWorld(["a"])
    let isBroken = true
    const pacer = new Pacer(1_000, "second")
    const nextAt = pacer.nextAt.bind(pacer)
    pacer.nextAt = (now) => {
      if (isBroken) throw new Error("a fault of ours")
      return nextAt(now)
    }
    world.setPacer(pacer)
    world.send("a", 5)
    expect(world.breakdowns.length).toBeGreaterThan(0)
    expect(world.queue.nextAt).toBe(world.now + 1_000)
    isBroken = false
    world.settle()
    expect(world.starts).toHaveLength(5)
    closed(world)
  })
})

layer(worldWith(connectorOf))("Destination actor with an attempt that throws", (it) => {
  const throwing: ReadonlyArray<readonly [name: string, act: Act]> = [
    [
      "before it is sent",
      () => {
        throw new Error("no way out")
      }
    ],
    ["while it is sent", () => Promise.reject(new Error("no way out"))],
    [
      "while its answer is read",
      () =>
        Promise.resolve(
          answer({
            headers: {
              toJSON: () => {
                throw new Error("no way out")
              }
            } as never
          })
        )
    ]
  ]
  for (const [name, act] of throwing) {
    it.effect(`An attempt that throws ${name} fails, is logged with its cause and is retried`, () =>
      Effect.gen(function* () {
        const acts = yield* Acts
        const calls = yield* Calls
        const { event, wake } = yield* waiting([linear(2_000, 3)])
        logged.length = 0
        acts.push(act)
        yield* wake
        yield* Queue.take(calls)
        expect(yield* recorded(event, 1)).toStrictEqual({ state: "PENDING", codes: ["INTERNAL_ERROR"] })
        yield* released
        const entry = logged.find(({ message }) => message.includes("an attempt broke down"))
        expect(entry!.message).toContain(event)
        expect(entry!.cause).toContain("no way out")
        yield* TestClock.adjust("2 seconds")
        yield* Queue.take(calls)
        expect(yield* recorded(event, 2)).toStrictEqual({ state: "SUCCESSFUL", codes: ["INTERNAL_ERROR", null] })
        yield* released
      })
    )
  }

  it.effect("An attempt that throws is the last one without a retry rule", () =>
    Effect.gen(function* () {
      const { event, wake } = yield* waiting()
      ;(yield* Acts).push(() => Promise.reject(new Error("no way out")))
      yield* wake
      expect(yield* recorded(event, 1)).toStrictEqual({ state: "FAILED", codes: ["INTERNAL_ERROR"] })
      yield* released
    })
  )

  it.effect("A queue still has permits for other events after twenty attempts that threw", () =>
    Effect.gen(function* () {
      const acts = yield* Acts
      const { event, wake } = yield* waiting([linear(1_000, 50)])
      for (let i = 0; i < 20; i++) {
        acts.push(() => {
          throw new Error(`no way out ${i}`)
        })
      }
      yield* wake
      for (let number = 1; number <= 20; number++) {
        yield* recorded(event, number)
        yield* released
        yield* TestClock.adjust("1 second")
      }
      const { state } = yield* recorded(event, 21)
      expect(state).toBe("SUCCESSFUL")
      const other = yield* waiting()
      yield* other.wake
      expect((yield* recorded(other.event, 1)).state).toBe("SUCCESSFUL")
      yield* released
    })
  )
})

layer(worldWith(connectorOf))("Journal with a callback that throws", (it) => {
  it.effect("A callback that throws does not keep the journal from answering others of the batch", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      const told: Array<string> = []
      logged.length = 0
      const event = (): string => newId(prefixes.event, Date.now())
      journal.mark(event(), Date.now(), () => {
        throw new Error("not my mark")
      })
      journal.mark(event(), Date.now(), (marked) => void told.push(`marked ${marked}`))
      const { connection } = yield* waiting()
      const record = (eventId: string) =>
        attemptRecord({
          teamId: ControlPlane.team,
          eventId,
          requestId: newId(prefixes.request, Date.now()),
          connectionId: connection.id,
          sourceId: connection.source_id,
          destinationId: connection.destination_id
        })
      journal.record(record(event()), true, () => {
        throw new Error("not my attempt")
      })
      journal.record(record(event()), true, (outcome) => void told.push(outcome))
      while (told.length < 2) yield* turn
      expect(told.toSorted()).toStrictEqual(["marked true", "superseded"])
      const causes = logged.filter(({ message }) => message.includes("broke down over its answer"))
      expect(causes).toHaveLength(2)
      expect(causes.some(({ cause }) => cause.includes("not my mark"))).toBe(true)
      expect(causes.some(({ cause }) => cause.includes("not my attempt"))).toBe(true)
      while (journal.stats().waitingAttempts > 0) yield* turn
    })
  )
})
