import { describe, expect, it } from "vitest"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import { Call } from "../src/limits/Calls.ts"
import { QueueWorld } from "./QueueWorld.ts"

/** What steps of workflows send waits for its turn in the destination's queue, and is made there once. */

/** A call that tells when it was begun. */
const callOf = (started: Array<string>, name: string, group = "wfl_1", since = 0): Call =>
  new Call({ group, since, bytes: 10, start: () => void started.push(name) })

describe("Calls of workflow steps", () => {
  it("A call starts at once if nothing holds it up, and keeps its permit until it ends", () => {
    const world = new QueueWorld(["a"], { permits: 2 })
    const started: Array<string> = []
    const calls = ["1", "2", "3"].map((name) => callOf(started, name, `wfl_${name}`))
    for (const call of calls) expect(world.queue.call(call)).toBe(true)
    expect(started.length).toBeLessThan(3)
    expect(world.permits.taken).toBe(started.length)
    const before = started.length
    world.queue.called(calls[Number(started[0]) - 1]!, "answered")
    expect(started.length).toBe(before + 1)
  })

  it("Calls take turns with connections and with calls of other workflows", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 1 })
    const [blocking] = world.send("a", 1)
    expect(world.starts.map(({ id }) => id)).toEqual([blocking!.id])
    world.send("a", 3)
    const started: Array<string> = []
    const calls = new Map<string, Call>()
    for (const [line, n] of [
      ["w1", 1],
      ["w1", 2],
      ["w1", 3],
      ["w2", 1]
    ] as const) {
      const name = `${line}/${n}`
      calls.set(name, callOf(started, name, line))
      world.queue.call(calls.get(name)!)
    }
    expect(started).toEqual([])
    const order: Array<string> = []
    for (let i = 0; i < 7; i++) {
      const [events, made] = [world.starts.length, started.length]
      if (world.wire.length > 0) {
        world.end()
        world.record()
      } else world.queue.called(calls.get(started.at(-1)!)!, "answered")
      if (world.starts.length > events) order.push("a")
      else if (started.length > made) order.push(started.at(-1)!.slice(0, 2))
    }
    // Whoever waits is passed over once at the most, when another one has left the round.
    expect(new Set(order.slice(0, 4))).toEqual(new Set(["a", "w1", "w2"]))
    expect(order.filter((one) => one === "a").length).toBe(3)
    expect(started.filter((one) => one.startsWith("w1"))).toEqual(["w1/1", "w1/2", "w1/3"])
  })

  it("Calls use the rate limit of the destination like its events", () => {
    const world = new QueueWorld(["a"], { pacer: new Pacer(1, "minute") })
    const started: Array<string> = []
    world.queue.call(callOf(started, "1"))
    world.queue.call(callOf(started, "2"))
    world.send("a", 1)
    expect(started).toEqual(["1"])
    const next = world.queue.nextAt!
    expect(next - world.now).toBeGreaterThanOrEqual(60_000)
    world.now = next
    world.go()
    world.marked()
    expect(world.starts.length + started.length).toBe(2)
  })

  it("The call that has waited longest starts first, even if it was asked for again", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 1 })
    const started: Array<string> = []
    const first = callOf(started, "first")
    world.queue.call(first)
    world.queue.call(callOf(started, "late", "wfl_1", 20))
    world.queue.call(callOf(started, "early", "wfl_1", 10))
    world.queue.called(first, "answered")
    expect(started).toEqual(["first", "early"])
  })

  it("A withdrawn call leaves the queue", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 1 })
    const started: Array<string> = []
    const [first, second, third] = ["1", "2", "3"].map((name) => callOf(started, name)) as [Call, Call, Call]
    for (const call of [first, second, third]) world.queue.call(call)
    expect(world.queue.withdraw(first)).toBe(false)
    expect(world.queue.withdraw(second)).toBe(true)
    world.queue.called(first, "answered")
    expect(started).toEqual(["1", "3"])
    world.queue.called(third, "answered")
    expect(world.permits.taken).toBe(0)
  })

  it("The number of waiting calls is limited, and a disabled destination accepts none", () => {
    const world = new QueueWorld(["a"], { maxConcurrency: 1 })
    const taken = Array.from({ length: 1_100 }, (_, i) => world.queue.call(callOf([], String(i))))
    expect(taken.filter(Boolean).length).toBe(1_001)
    const disabled = new QueueWorld(["a"])
    disabled.setDestination("cancelled")
    expect(disabled.queue.call(callOf([], "1"))).toBe(false)
  })
})
