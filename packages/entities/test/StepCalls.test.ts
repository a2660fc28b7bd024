import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as Connectors from "@tidegate/connectors/Connectors"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import type { StepSend } from "../src/Destination/steps/StepProtocol.ts"
import * as LocalEntities from "../src/dispatch/LocalEntities.ts"
import { Acts, answer, Calls, turn, worldWith } from "./DestinationWorld.ts"

/** What steps of workflows send through the destination's actor: each is answered once, whatever becomes of the destination. */

const { createDestination, team } = ControlPlane

const send = (n: number): StepSend => ({
  team_id: team,
  workflow: { id: "wfl_1", name: "workflow" },
  run_id: "wfr_1",
  step_id: "step",
  key: `wse_${n}`,
  attempt: 1,
  loop: "tidegate",
  timeout_ms: 5_000,
  since: n,
  request: {
    id: "req_1",
    source_id: "src_1",
    source_name: "source",
    method: "POST",
    path: "/",
    query: "",
    headers: {},
    body: Buffer.from("{}"),
    presented: null
  }
})

layer(worldWith(Connectors.connectorOf))("Step calls of a destination's actor", (it) => {
  const actorOf = Effect.fnUntraced(function* (config: object = {}) {
    const sql = yield* SqlClient.SqlClient
    const destination = yield* createDestination()
    yield* sql`update destinations set config = (config::jsonb || ${JSON.stringify(config)}::jsonb)::json where id = ${destination.id}`
    return { id: destination.id, actor: (yield* DestinationEntity.client)(destination.id) }
  })

  it.effect("A call returns the target's answer and the time at which the target accepts the next call", () =>
    Effect.gen(function* () {
      const { actor } = yield* actorOf()
      const acts = yield* Acts
      acts.push(() => Promise.resolve(answer({ status: 429, headers: { "retry-after": "7" } })))
      expect(yield* actor.Send(send(1))).toMatchObject({
        kind: "failed",
        code: "BAD_RESPONSE",
        status: 429,
        retry_after_ms: 7_000,
        final: false
      })
      acts.push(() => Promise.resolve(answer({ body: Buffer.from("fine") })))
      // It has said so of itself, and not of the one call.
      const next = yield* Effect.forkChild(actor.Send(send(2)))
      const calls = yield* Calls
      yield* Queue.take(calls)
      yield* TestClock.adjust("6 seconds")
      for (let i = 0; i < 20; i++) yield* turn
      expect([yield* Queue.size(calls), next.pollUnsafe()]).toEqual([0, undefined])
      yield* TestClock.adjust("2 seconds")
      expect(yield* Fiber.join(next)).toMatchObject({ kind: "answered", status: 200, truncated: false })
      const made = yield* Queue.take(calls)
      expect(made.timeoutMs).toBe(5_000)
      expect(made.headers).toContain("wse_2")
    })
  )

  it.effect("The process calls a local actor directly for a while after a message, with current settings", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { give } = yield* LocalEntities.Called
      const { actor, id } = yield* actorOf()
      expect(give(id, send(20))).toBeUndefined()
      yield* actor.Send(send(20))
      expect(yield* give(id, send(21))!).toMatchObject({ kind: "answered" })
      // The actor might be gone before that one is over.
      expect(give(id, { ...send(22), timeout_ms: 30_001 })).toBeUndefined()
      expect(yield* give(id, { ...send(22), team_id: ControlPlane.otherTeam })!).toMatchObject({
        code: "RESOURCE_DELETED"
      })
      yield* sql`update destinations set disabled_at = now() where id = ${id}`
      yield* actor.Reload()
      expect(yield* give(id, send(22))!).toMatchObject({ kind: "failed", code: "RESOURCE_DISABLED" })
      yield* TestClock.adjust("31 seconds")
      expect(give(id, send(22))).toBeUndefined()
    })
  )

  it.effect("The actor rejects a call of another team", () =>
    Effect.gen(function* () {
      const { actor } = yield* actorOf()
      const sent = yield* actor.Send({ ...send(3), team_id: ControlPlane.otherTeam })
      expect(sent).toMatchObject({ kind: "failed", code: "RESOURCE_DELETED" })
    })
  )

  it.effect("A call whose caller has gone is aborted, by a message and directly, and the next one has its permit", () =>
    Effect.gen(function* () {
      const { give } = yield* LocalEntities.Called
      const { actor, id } = yield* actorOf()
      const acts = yield* Acts
      const calls = yield* Calls
      yield* Queue.clear(calls)
      for (const call of [() => actor.Send(send(30)), () => give(id, send(31))!]) {
        acts.push(
          ({ signal }) =>
            new Promise((resolve) =>
              signal!.addEventListener("abort", () =>
                resolve(answer({ status: null, errorCode: "NETWORK_REQUEST_CANCELED" }))
              )
            )
        )
        const caller = yield* Effect.forkChild(call())
        const { signal } = yield* Queue.take(calls)
        yield* Fiber.interrupt(caller)
        while (!signal!.aborted) yield* turn
      }
      // The process has one permit.
      expect(yield* actor.Send(send(32))).toMatchObject({ kind: "answered" })
    })
  )

  it.effect("A call that waits for its permit fails at once when the destination is disabled", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { actor, id } = yield* actorOf({ rate_limit: 1, rate_limit_period: "hour" })
      expect(yield* actor.Send(send(4))).toMatchObject({ kind: "answered" })
      const waiting = yield* Effect.forkChild(actor.Send(send(5)))
      yield* turn
      yield* sql`update destinations set disabled_at = now() where id = ${id}`
      yield* actor.Reload()
      expect(yield* Fiber.join(waiting)).toMatchObject({ kind: "failed", code: "RESOURCE_DISABLED" })
    })
  )

  it.effect("A call that waits long must be asked for again, and then gets its permit in time", () =>
    Effect.gen(function* () {
      const { actor } = yield* actorOf({ rate_limit: 1, rate_limit_period: "minute" })
      yield* actor.Send(send(6))
      const asked = yield* Effect.forkChild(actor.Send(send(7)))
      yield* turn
      yield* TestClock.adjust("31 seconds")
      expect(yield* Fiber.join(asked)).toEqual({ kind: "again" })
      const again = yield* Effect.forkChild(actor.Send(send(7)))
      yield* turn
      yield* TestClock.adjust("29500 millis")
      expect(yield* Fiber.join(again)).toMatchObject({ kind: "answered" })
    })
  )

  it.effect("The next owner knows the permits that steps used, and without a rate none are stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sharding = yield* Sharding.Sharding
      const { actor, id } = yield* actorOf({ rate_limit: 1, rate_limit_period: "hour" })
      const other = yield* actorOf()
      for (const { Send } of [actor, other.actor]) expect(yield* Send(send(8))).toMatchObject({ kind: "answered" })
      expect(yield* sql`select key from step_results where key in (${id}, ${other.id})`).toEqual([{ key: id }])
      // Nobody has asked for so long: whoever comes next knows what is in SQL.
      const active = sharding.activeEntityCount
      const before = yield* active
      while ((yield* active) >= before) {
        yield* TestClock.adjust("10 seconds")
        yield* turn
      }
      const asked = Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(actor.Send(send(9)))
        while (fiber.pollUnsafe() === undefined) {
          yield* TestClock.adjust("100 millis")
          yield* turn
        }
        return yield* Fiber.join(fiber)
      })
      expect(yield* asked).toEqual({ kind: "again" })
      yield* TestClock.adjust("1 hour")
      // The time passes faster than the database answers: it asks again, as steps do.
      let sent = yield* asked
      while (sent.kind === "again") sent = yield* asked
      expect(sent).toMatchObject({ kind: "answered" })
    })
  )
})
