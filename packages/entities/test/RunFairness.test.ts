import { expect, it as plainIt, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Latch } from "effect"
import { createDestination, otherTeam, team, unique } from "../../storage/test/controlPlane.ts"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { Room, RunRoom } from "../src/Workflow/RunRoom.ts"
import { coming, create, from, receive, runOf, sent, trim, wake, world } from "./RunsWorld.ts"

/** What a process carries out at once for all workflows, and the most that one team has of it. */
const ceiling = 256
const oneTeam = ceiling / 2
/** A slow target of one team keeps a run of another waiting for no part of this; without shares, for as long as it is slow. */
const soonMs = 30_000

const ok: Outcome = { kind: "succeeded", output: null, ports: ["out"] }

layer(world, { excludeTestServices: true })("Teams beside each other", (it) => {
  it.effect("Two hundred runs at a slow target do not delay another team, and all of them end", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const steps = [{ id: "send", kind: "destination", resource_id: destination.id }]
      const target = yield* Latch.make(false)
      const begun = { now: 0, most: 0 }
      const slow = Effect.gen(function* () {
        begun.most = Math.max(begun.most, ++begun.now)
        yield* target.await
        begun.now--
        return ok
      })
      const workflows = yield* Effect.forEach(Array.from({ length: 20 }), () => create(steps, [from(null, "send")]), {
        concurrency: 4
      })
      const runs = yield* Effect.forEach(
        workflows,
        (workflow) => Effect.forEach(Array.from({ length: 10 }), () => receive(workflow, {}), { concurrency: 10 }),
        { concurrency: 4 }
      )
      coming.push(...Array.from({ length: 200 }, () => slow))
      const working = yield* Effect.forEach(workflows, ({ id }) => Effect.forkChild(wake(id)))
      yield* until(() => begun.now === oneTeam)

      // The quick one's step leaves the process behind all of those that wait.
      const note = { id: "note", kind: "action", action: { provider_key: "http", action_key: "request" } }
      const inputs = { method: "POST", url: "https://target.test/" }
      const quick = yield* create([{ ...note, invocation_inputs: inputs }], [from(null, "note")], otherTeam)
      const waited: Array<number> = []
      for (let n = 0; n < 5; n++) {
        const run = yield* receive(quick, {}, otherTeam)
        coming.unshift(Effect.succeed(ok))
        const since = yield* Clock.currentTimeMillis
        yield* wake(quick.id)
        waited.push((yield* Clock.currentTimeMillis) - since)
        expect(yield* runOf(run)).toMatchObject({ status: "succeeded" })
      }
      expect(Math.max(...waited)).toBeLessThan(soonMs)
      expect(begun).toEqual({ now: oneTeam, most: oneTeam })

      yield* target.open
      yield* Effect.forEach(working, Fiber.join)
      for (const run of runs.flat()) expect(yield* runOf(run)).toMatchObject({ status: "succeeded", queued: false })
      expect(sent.filter(([step]) => step === "send")).toHaveLength(200)
      expect(begun.most).toBe(oneTeam)
    })
  )

  it.effect("Large runs that are woken together use no more memory than one team may have", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const steps = [{ id: "send", kind: "destination", resource_id: destination.id }]
      const body = { text: "x".repeat(9 * 1_048_576) }
      const count = 20
      const workflows = yield* Effect.forEach(Array.from({ length: count }), () => create(steps, [from(null, "send")]))
      const runs = yield* Effect.forEach(workflows, (workflow) => receive(workflow, body))
      const target = yield* Latch.make(false)
      let begun = 0
      const slow = Effect.suspend(() => {
        begun++
        return Effect.as(target.await, ok)
      })
      coming.push(...Array.from({ length: count }, () => slow))
      const working = yield* Effect.forEach(workflows, ({ id }) => Effect.forkChild(wake(id)))
      // Half of 128 MiB, and what is read beside that at the same time.
      yield* until(() => begun >= 6)
      const quick = yield* create([trim("note", "a")], [from(null, "note")], otherTeam)
      const run = yield* receive(quick, {}, otherTeam)
      const since = yield* Clock.currentTimeMillis
      yield* wake(quick.id)
      expect((yield* Clock.currentTimeMillis) - since).toBeLessThan(soonMs)
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded" })
      expect(begun).toBeLessThanOrEqual(10)
      yield* target.open
      yield* Effect.forEach(working, Fiber.join)
      for (const run of runs) expect(yield* runOf(run)).toMatchObject({ status: "succeeded" })
    })
  )

  it.effect(
    "Each of many teams gets one permit for its runs, and a permit that becomes free goes to a waiting team",
    () =>
      Effect.gen(function* () {
        const rooms = yield* Room
        const hold = yield* Latch.make(false)
        const taken = new Map<string, number>()
        const within = (id: string) =>
          rooms.of(id).within(
            Effect.andThen(
              Effect.sync(() => taken.set(id, (taken.get(id) ?? 0) + 1)),
              hold.await
            )
          )
        const greedy = Array.from({ length: 5 }, () => unique("greedy"))
        const fibers = yield* Effect.forEach(
          greedy.flatMap((id) => Array.from({ length: ceiling }, () => id)),
          (id) => Effect.forkChild(within(id))
        )
        yield* until(() => taken.size === greedy.length)
        const left = ceiling - [...taken.values()].reduce((sum, one) => sum + one, 0)
        expect(left).toBeGreaterThan(0)
        const single = unique("single")
        yield* Effect.forkChild(within(single))
        yield* until(() => taken.get(single) === 1)
        // Whoever stops waiting takes nobody's place along.
        yield* Effect.forEach(fibers, Fiber.interrupt, { concurrency: "unbounded", discard: true })
        yield* hold.open
        for (const id of [team, ...greedy]) yield* within(id)
      })
  )
})

plainIt.effect("The run memory forgets a team that uses none of it", () =>
  Effect.gen(function* () {
    const rooms = new RunRoom()
    const hold = yield* Latch.make(false)
    const teams = Array.from({ length: 300 }, (_, i) => `team_${i}`)
    for (const id of teams) expect(rooms.of(id).mayRead(1)).toBe(true)
    expect(rooms.teams).toBe(0)
    // More than there are places for: some wait.
    const fibers = yield* Effect.forEach(teams, (id) =>
      Effect.forkChild(rooms.of(id).within(hold.await), { startImmediately: true })
    )
    expect(rooms.teams).toBe(teams.length)
    yield* Effect.forEach(fibers.slice(250, 280), Fiber.interrupt, { discard: true })
    expect(rooms.teams).toBe(teams.length - 30)
    yield* hold.open
    yield* Effect.forEach([...fibers.slice(0, 250), ...fibers.slice(280)], Fiber.join)
    expect(rooms.teams).toBe(0)
    const room = rooms.of("team_1")
    room.hold(5)
    expect(rooms.of("team_1").hasRoom(128 * 1_048_576)).toBe(false)
    expect(rooms.teams).toBe(1)
    room.release(5)
    expect(rooms.teams).toBe(0)
  })
)

plainIt("The run memory has the size that its process allows, and reads only a part at once", () => {
  const [large, small] = [new RunRoom(512 * 1_048_576), new RunRoom(32 * 1_048_576)]
  expect([large.readBytes, small.readBytes]).toEqual([16 * 1_048_576, 4 * 1_048_576])
  expect(large.of("team").hasRoom(512 * 1_048_576)).toBe(true)
  expect(small.of("team").hasRoom(33 * 1_048_576)).toBe(false)
  small.of("team").hold(16 * 1_048_576)
  expect(small.of("team").mayRead(small.readBytes)).toBe(false)
  expect(small.of("other").mayRead(small.readBytes)).toBe(true)
})

const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep("5 millis"), until(holds))))
