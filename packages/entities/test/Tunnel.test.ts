import { layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import * as Connectors from "@tidegate/connectors/Connectors"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import type { DeliveryItem } from "../src/Destination/queue/DeliveryItem.ts"
import { maxThroughTunnel, Tunnel } from "../src/Destination/tunnel/Tunnel.ts"
import type { Heard, TunnelJob, TunnelResult } from "../src/Destination/tunnel/TunnelProtocol.ts"
import { linear, recorded, turn, waiting, worldWith } from "./DestinationWorld.ts"
import { QueueWorld } from "./QueueWorld.ts"

/** The actor's end of a tunnel: who holds it open, what becomes of what is under way, and how long events wait for somebody. */

interface Timer {
  readonly at: number
  readonly call: () => void
}

/** A tunnel, with a clock that a test moves. */
class World {
  now = 1_790_000_000_000
  changes = 0
  isOurs = true
  readonly timers = new Set<Timer>()
  readonly ends: Array<string> = []
  readonly tunnel = new Tunnel({
    now: () => this.now,
    after: (ms, then) => {
      const timer = { at: this.now + ms, call: then }
      this.timers.add(timer)
      return () => void this.timers.delete(timer)
    },
    changed: () => void this.changes++,
    mayDeliver: () => this.isOurs
  })

  pass(ms: number): void {
    const until = this.now + ms
    for (;;) {
      const [next] = [...this.timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      this.timers.delete(next)
      this.now = next.at
      next.call()
    }
    this.now = until
  }

  send(id: string, bytes = 0): void {
    const job: TunnelJob = { job_id: id, timeout_ms: 30_000, request: "{}", body: Buffer.alloc(bytes) }
    this.tunnel.send(job, ({ kind }) => void this.ends.push(`${id} ${kind}`))
  }

  /** Asks, and what it is answered: null until it is. */
  ask(cli_id: string, holding: ReadonlyArray<string> = [], room = 1e6): { heard: Heard | null } {
    const asked: { heard: Heard | null } = { heard: null }
    this.tunnel.listen({ cli_id, holding, local_url: null, room }, (heard) => (asked.heard = heard))
    return asked
  }
}

const ids = (heard: Heard | null) => heard?.jobs.map(({ job_id }) => job_id)
const ok = (job_id: string): TunnelResult => ({
  job_id,
  status: 200,
  headers: {},
  body: Buffer.alloc(0),
  body_truncated: false,
  failure: null
})
const flushed = () => new Promise<void>((resolve) => queueMicrotask(resolve))

describe("Tunnel", () => {
  it("A tunnel hands out nothing while another process owns its shard", async () => {
    const world = new World()
    const id = world.tunnel.attach(null)!
    world.send("a")
    await flushed()
    world.isOurs = false
    const asked = world.ask(id)
    world.send("b")
    await flushed()
    expect(asked.heard).toBeNull()
    world.isOurs = true
    expect(ids(world.ask(id).heard)).toEqual(["a", "b"])
  })

  it("A tunnel hands out events in order as soon as the client asks", async () => {
    const world = new World()
    world.send("a")
    expect(world.ends).toEqual(["a away"])
    const id = world.tunnel.attach(null)!
    const first = world.ask(id)
    world.send("b")
    world.send("c")
    await flushed()
    expect(ids(first.heard)).toEqual(["b", "c"])
    world.send("d")
    expect(ids(world.ask(id, ["b", "c"]).heard)).toEqual(["d"])
    expect(world.tunnel.answered(id, [ok("c"), ok("b"), ok("b"), ok("nobody's")])).toBe(2)
    expect(world.ends).toEqual(["a away", "c answered", "b answered"])
  })

  it("A tunnel hands out lost jobs again, but never those that the client holds", async () => {
    const world = new World()
    const id = world.tunnel.attach(null)!
    world.ask(id)
    world.send("a")
    world.send("b")
    await flushed()
    // The answer that "a" and "b" were in was lost, but for "b".
    expect(ids(world.ask(id, ["b"]).heard)).toEqual(["a"])
    expect(world.ask(id, ["a", "b"]).heard).toBeNull()
  })

  it("A tunnel takes over the session of an earlier owner and its jobs", async () => {
    const world = new World()
    const asked = world.ask("cli_1", ["a"])
    expect(world.tunnel.session?.id).toBe("cli_1")
    world.send("a")
    world.send("b")
    await flushed()
    expect(ids(asked.heard)).toEqual(["b"])
    expect(world.tunnel.answered("cli_1", [ok("a")])).toBe(0)
    expect(world.ends).toEqual(["a answered"])
  })

  it("A tunnel belongs to the newest session, whatever older ones ask for", async () => {
    const world = new World()
    const older = world.tunnel.attach(null)!
    const waits = world.ask(older)
    world.send("a")
    await flushed()
    const again = world.ask(older, ["a"])
    const newer = world.tunnel.attach(null)!
    expect(newer > older).toBe(true)
    expect(again.heard).toEqual({ jobs: [], ended: "replaced" })
    expect(waits.heard?.ended).toBeNull()
    expect(world.ends).toEqual(["a returned"])
    expect(world.tunnel.answered(older, [ok("a")])).toBe(1)
    expect(world.ask(older).heard).toEqual({ jobs: [], ended: "replaced" })
    const next = new World()
    next.ask(newer)
    expect(next.ask(older).heard?.ended).toBe("replaced")
    world.tunnel.leave(older)
    expect(world.tunnel.awaySince).toBeNull()
  })

  it("A tunnel has no client once its session was silent for a while", async () => {
    const world = new World()
    const id = world.tunnel.attach(null)!
    const asked = world.ask(id)
    world.send("a")
    world.send("b")
    await flushed()
    world.pass(7_000)
    expect(world.tunnel.awaySince).toBeNull()
    world.pass(2_000)
    expect(ids(asked.heard)).toEqual(["a", "b"])
    expect(world.tunnel.awaySince).not.toBeNull()
    // The first one last, so that it is the first again.
    expect(world.ends).toEqual(["b returned", "a returned"])
    expect(world.timers.size).toBe(0)
  })

  it("A tunnel answers an idle client after a while and ends jobs that are not answered in time", async () => {
    const world = new World()
    const id = world.tunnel.attach(null)!
    const asked = world.ask(id)
    world.pass(5_000)
    expect(asked.heard).toEqual({ jobs: [], ended: null })
    world.ask(id)
    world.send("a")
    await flushed()
    for (let i = 0; i < 10; i++) {
      world.ask(id, ["a"])
      world.pass(3_000)
    }
    expect(world.ends).toEqual(["a late"])
    expect(world.tunnel.answered(id, [ok("a")])).toBe(1)
  })

  it("The time limit of a job starts when the client has it", async () => {
    const world = new World()
    const id = world.tunnel.attach(null)!
    world.ask(id, [], 0)
    world.send("a")
    await flushed()
    for (let i = 0; i < 12; i++) {
      world.pass(4_000)
      world.ask(id, [], 0)
    }
    expect(world.ends, "it has not been told yet").toEqual([])
    expect(ids(world.ask(id).heard)).toEqual(["a"])
    for (let i = 0; i < 9; i++) {
      world.pass(3_000)
      world.ask(id, ["a"])
    }
    expect(world.ends).toEqual([])
    world.pass(3_000)
    expect(world.ends).toEqual(["a late"])
  })

  it("A new session owns the tunnel even if an earlier owner's clock was ahead", () => {
    const before = new World()
    before.now += 60_000
    const older = before.tunnel.attach(null)!
    const world = new World()
    const newer = world.tunnel.attach(null)!
    expect(older > newer).toBe(true)
    expect(world.ask(older).heard).toEqual({ jobs: [], ended: "replaced" })
    expect(world.tunnel.session?.id).toBe(newer)
  })

  it("A tunnel hands out as many jobs as the client has room for, or one larger job", async () => {
    const world = new World()
    const id = world.tunnel.attach(null)!
    for (const name of ["a", "b", "c"]) world.send(name, 600)
    await flushed()
    expect(world.ask(id, [], 0).heard).toBeNull()
    expect(ids(world.ask(id, [], 1_000).heard)).toEqual(["a"])
    expect(ids(world.ask(id, ["a"], 1_200).heard)).toEqual(["b", "c"])
    world.send("d", 5_000)
    await flushed()
    expect(ids(world.ask(id, ["a", "b", "c"], 1).heard)).toEqual(["d"])
  })

  it("A tunnel ends with its destination", () => {
    const world = new World()
    const id = world.tunnel.attach(null)!
    const asked = world.ask(id)
    world.tunnel.configure(false)
    expect(asked.heard).toEqual({ jobs: [], ended: "gone" })
    expect(world.tunnel.attach(null)).toBeNull()
    expect(world.ask(id).heard?.ended).toBe("gone")
    world.tunnel.configure(true)
    expect(world.tunnel.attach(null)).not.toBeNull()
  })
})

describe("Delivery queue whose target is away", () => {
  const minutes = (count: number): number => count * 60_000
  const away = () => {
    const targetAvailability = { awaySince: 1_790_000_000_000 as number | null, patience: minutes(2) }
    return { targetAvailability, world: new QueueWorld(["a", "b"], { targetAvailability }) }
  }

  it("A queue starts nothing until its target is back, and then everything in order of arrival", () => {
    const { targetAvailability, world } = away()
    const rows = Array.from({ length: 30 }, () => {
      world.now += 10
      return world.send("a", 1)[0]!.id
    })
    world.go()
    world.refillNow()
    expect(world.starts).toEqual([])
    expect(world.queue.nextAt).toBe(1_790_000_000_010 + minutes(2))
    const refills = world.refills
    for (let i = 0; i < 100; i++) world.queue.wake()
    expect(world.refills - refills, "nothing is read for a target that is away").toBeLessThanOrEqual(1)
    targetAvailability.awaySince = null
    world.queue.wake()
    expect(world.starts.map(({ id }) => id)).toEqual(rows)
  })

  it("Each event waits for an absent target for the same time", () => {
    const { targetAvailability, world } = away()
    world.send("a", 1)
    world.now += minutes(1)
    world.send("b", 1)
    world.send("a", 1, { dueIn: 20_000 })
    const started = () => world.starts.length
    world.now += minutes(1) - 1
    world.queue.tick()
    expect(started()).toBe(0)
    world.now += 1
    world.queue.tick()
    expect(started()).toBe(1)
    world.now += minutes(1)
    world.queue.tick()
    expect(started()).toBe(2)
    world.now += 20_000
    world.queue.tick()
    expect(started()).toBe(3)
    // One that was ready when its target went away waits from then on.
    targetAvailability.awaySince = null
    world.settle()
    targetAvailability.awaySince = world.now
    world.send("a", 1)
    world.now += minutes(2) - 1
    world.queue.tick()
    expect(started()).toBe(3)
    world.now += 1
    world.queue.tick()
    expect(started()).toBe(4)
  })

  it("Returned events become the first in the queue again", () => {
    const { targetAvailability, world } = away()
    targetAvailability.awaySince = null
    const rows = world.send("a", 60)
    expect(world.wire).toHaveLength(maxThroughTunnel)
    targetAvailability.awaySince = world.now
    const returned: Array<DeliveryItem> = world.wire.splice(0).map(({ item }) => item)
    world.forget(returned)
    for (const item of returned.toReversed()) world.queue.returned(item)
    expect(world.permits.taken).toBe(0)
    targetAvailability.awaySince = null
    world.queue.wake()
    expect(world.wire.map(({ item }) => item.eventId)).toEqual(rows.slice(0, 50).map(({ id }) => id))
    world.settle()
    expect(world.pending).toBe(0)
    expect(world.queue.nextAt).toBeNull()
  })
})

layer(worldWith(Connectors.connectorOf))("Event for a tunnel", (it) => {
  const cli = { type: "CLI", config: { path: "/hooks" } }

  /** Lets time go by until the event has so many attempts recorded; how much that was (ms). */
  const passes = Effect.fnUntraced(function* (event: string, attempts: number) {
    const sql = yield* SqlClient.SqlClient
    const from = yield* Clock.currentTimeMillis
    for (;;) {
      const [row] = yield* sql<{ attempts: number }>`select attempts from events where id = ${event}`
      if (row!.attempts >= attempts) return (yield* Clock.currentTimeMillis) - from
      yield* TestClock.adjust("1 second")
      yield* turn
    }
  })

  it.effect("An event fails if no client connects for two minutes, and its retry waits as long", () =>
    Effect.gen(function* () {
      const { event, wake } = yield* waiting([linear(1_000, 1)], cli)
      yield* wake
      const first = yield* passes(event, 1)
      expect(first).toBeGreaterThanOrEqual(120_000)
      // Time may go by before it is seen that the first one is recorded, and counts for the second.
      const failed = { state: "FAILED", codes: ["CLI_UNAVAILABLE", "CLI_UNAVAILABLE"] }
      const retried = { state: "PENDING", codes: ["CLI_UNAVAILABLE"] }
      const seen = yield* recorded(event, 1)
      expect(seen).toEqual(seen.codes.length === 1 ? retried : failed)
      expect(first + (yield* passes(event, 2))).toBeGreaterThanOrEqual(240_000)
      expect(yield* recorded(event, 2)).toEqual(failed)
    })
  )

  it.effect("A client that connects gets the waiting event, and its answer is the result", () =>
    Effect.gen(function* () {
      const { connection, event, wake } = yield* waiting([], cli)
      yield* wake
      yield* turn
      const actor = (yield* DestinationEntity.client)(connection.destination_id)
      const cli_id = (yield* actor.Attach({ local_url: null }))!
      const heard = yield* actor.Listen({ cli_id, local_url: null, holding: [], room: 1_000 })
      expect(heard.jobs).toHaveLength(1)
      expect(JSON.parse(heard.jobs[0]!.request)).toMatchObject({
        event_id: event,
        path: expect.stringMatching(/^\/hooks/)
      })
      expect(yield* actor.Answer({ cli_id, results: [ok(heard.jobs[0]!.job_id)] })).toBe(0)
      expect(yield* recorded(event, 1)).toEqual({ state: "SUCCESSFUL", codes: [null] })
      yield* actor.Leave({ cli_id })
    })
  )
})
