import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Queue } from "effect"
import { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { connectorOf } from "@tidegate/connectors/Connectors"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Connections } from "@tidegate/storage/control/Connections"
import { nextPosition, waitsForKey } from "@tidegate/storage/delivery/OrderingKeys"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import { shardOf } from "../src/Shards.ts"
import { pollOnce } from "../src/dispatch/Poller.ts"
import { Acts, answer, Calls, linear, recorded, turn, worldWith } from "./DestinationWorld.ts"

/** A connection that keeps an order, with events of these keys waiting; its actor has not begun. */
const waiting = Effect.fnUntraced(function* (on_failure: "block" | "skip", keys: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const sharding = yield* Sharding.Sharding
  const connection = yield* ControlPlane.createConnection({
    rules: [linear(5_000, 3)],
    ordering: { key: "body.key", on_failure }
  })
  const shard = shardOf(sharding, connection.destination_id)
  const add = Effect.fnUntraced(function* (key: string) {
    const createdAt = new Date((yield* Clock.Clock).currentTimeMillisUnsafe())
    const event = yield* ControlPlane.insertEvent(connection, { createdAt })
    yield* sql`update events set ordering_key = ${key} where id = ${event}`
    yield* sql`update deliveries set shard = ${shard}, ordering_key = ${key}, place = ${sql.literal(nextPosition)}, ready_at = due_at,
      due_at = ${sql.literal(waitsForKey)} where event_id = ${event}`
    return event
  })
  const events: Array<string> = []
  for (const key of keys) events.push(yield* add(key))
  const actor = (yield* DestinationEntity.client)(connection.destination_id)
  return { actor, add, connection, events, wake: actor.Wake(undefined, { discard: true }) }
})

/** The events of the next deliveries. */
const delivered = Effect.fnUntraced(function* (count: number) {
  const calls = yield* Calls
  const found: Array<string> = []
  for (let i = 0; i < count; i++) {
    const { headers = [] } = yield* Queue.take(calls)
    found.push(headers[headers.indexOf("x-gateway-event-id") + 1]!)
  }
  return found
})

/** What wakes that go on coming find, in time. */
const woken = Effect.fnUntraced(function* (wake: Effect.Effect<void, unknown>) {
  for (let times = 0; times < 3; times++) {
    yield* TestClock.adjust("3 seconds")
    yield* Effect.ignore(wake)
    for (let turns = 0; turns < 50; turns++) yield* turn
  }
})

const noneLeft = Effect.gen(function* () {
  for (let turns = 0; turns < 20; turns++) yield* turn
  expect(yield* Queue.size(yield* Calls)).toBe(0)
})

const fail = () => Promise.resolve(answer({ status: 500 }))

layer(worldWith(connectorOf))("Destination with an ordered connection", (it) => {
  it.effect("A wake-up notification alone is enough to deliver waiting events in order", () =>
    Effect.gen(function* () {
      const { events, wake } = yield* waiting("block", ["x", "x", "x"])
      yield* wake
      expect(yield* delivered(3)).toEqual(events)
      for (const event of events) yield* recorded(event, 1)
    })
  )

  it.effect("The poller wakes ordered connections, and a blocked ordering key waits for its retry", () =>
    Effect.gen(function* () {
      const { events } = yield* waiting("block", ["x", "x", "y"])
      ;(yield* Acts).push(fail)
      yield* pollOnce
      const first = yield* delivered(2)
      expect(new Set(first)).toEqual(new Set([events[0], events[2]]))
      // Whichever was first has failed.
      const [failed] = first
      yield* recorded(failed!, 1)
      yield* TestClock.adjust("6 seconds")
      const rest = yield* delivered(2)
      expect([...first, ...rest].filter((event) => event !== events[2])).toEqual(
        failed === events[0] ? [events[0], events[0], events[1]] : [events[0], events[1]]
      )
      yield* recorded(events[1]!, 1)
    })
  )

  it.effect("Other events pass a failed event that may be skipped", () =>
    Effect.gen(function* () {
      const { events, wake } = yield* waiting("skip", ["x", "x"])
      ;(yield* Acts).push(fail)
      yield* wake
      expect(yield* delivered(2)).toEqual(events)
      yield* recorded(events[1]!, 1)
      yield* noneLeft
      yield* TestClock.adjust("6 seconds")
      expect(yield* delivered(1)).toEqual([events[0]])
      expect((yield* recorded(events[0]!, 2)).state).toBe("SUCCESSFUL")
    })
  )

  it.effect("Ordering keys wait during a pause, and events of a disabled connection are forgotten", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { actor, add, connection, events, wake } = yield* waiting("block", ["x", "x"])
      yield* connections.switch(ControlPlane.team, connection.id, "pause")
      yield* wake
      yield* actor.Reload()
      yield* noneLeft
      yield* connections.switch(ControlPlane.team, connection.id, "unpause")
      yield* actor.Reload()
      expect(yield* delivered(2)).toEqual(events)
      yield* recorded(events[1]!, 1)
      yield* connections.switch(ControlPlane.team, connection.id, "pause")
      yield* actor.Reload()
      yield* add("x")
      yield* TestClock.adjust("1 second")
      yield* connections.switch(ControlPlane.team, connection.id, "disable")
      yield* connections.switch(ControlPlane.team, connection.id, "enable")
      yield* TestClock.adjust("1 second")
      yield* actor.Reload()
      const fresh = yield* add("x")
      yield* woken(wake)
      expect(yield* delivered(1)).toEqual([fresh])
      yield* recorded(fresh, 1)
    })
  )

  it.effect("A manual retry is placed after the waiting events of its ordering key", () =>
    Effect.gen(function* () {
      const { actor, add, events, wake } = yield* waiting("block", ["x"])
      yield* wake
      expect(yield* delivered(1)).toEqual(events)
      yield* recorded(events[0]!, 1)
      const [second] = [yield* add("x")]
      const at = (yield* Clock.Clock).currentTimeMillisUnsafe()
      const { replay_event_id } = yield* actor.RetryEvent({
        team_id: ControlPlane.team,
        event_id: events[0]!,
        id: newId(prefixes.event, at)
      })
      yield* woken(wake)
      expect(yield* delivered(2)).toEqual([second, replay_event_id])
      yield* recorded(replay_event_id, 1)
    })
  )
})
