import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Latch, Queue } from "effect"
import { SqlClient } from "effect/sql"
import { connectorOf } from "@tidegate/connectors/Connectors"
import { haveAlone, takeInHand } from "@tidegate/storage/delivery/WorkInHand"
import { team } from "../../storage/test/controlPlane.ts"
import { Hand } from "../src/InHand.ts"
import { Acts, answer, Calls, linear, recorded, released, waiting, worldWith } from "./DestinationWorld.ts"

/** Processes that have ended with a delivery: the first beside others, the rest while it was alone. */
const ended = Effect.fnUntraced(function* (event: string, times: number) {
  const work = { kind: "event", id: event, team_id: team } as const
  for (let i = 0; i < times; i++) {
    yield* takeInHand(`prc_${i}`, [work])
    if (i > 0) yield* haveAlone(`prc_${i}`, work, true)
  }
  yield* (yield* Hand).look
})

const rowOf = Effect.fnUntraced(function* (event: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ alone: boolean; ends: number }>`
    select alone, ends from work_in_hand where kind = 'event' and id = ${event}`
  return row
})

/** The row goes after the attempt is recorded, with the next statement. */
const forgotten = (event: string) =>
  rowOf(event).pipe(Effect.repeat({ until: (row) => row === undefined }), Effect.andThen(Effect.void))

/** A delivery that waits at its target until the test lets it go. */
const held = Effect.gen(function* () {
  const latch = Latch.makeUnsafe()
  const arrived = yield* Deferred.make<void>()
  ;(yield* Acts).push(async () => {
    Deferred.doneUnsafe(arrived, Effect.void)
    await Effect.runPromise(latch.await)
    return answer()
  })
  return { arrived: Deferred.await(arrived), latch }
})

layer(worldWith(connectorOf))("Delivery in progress", (it) => {
  it.effect("Only a delivery with a large body is stored as in progress, until it ends", () =>
    Effect.gen(function* () {
      for (const [body, row] of [
        ["{}", undefined],
        [`"${"x".repeat(70_000)}"`, { ends: 0, alone: false }]
      ] as const) {
        const { arrived, latch } = yield* held
        const { event, wake } = yield* waiting([], undefined, body)
        yield* wake
        yield* arrived
        expect(yield* rowOf(event)).toEqual(row)
        latch.openUnsafe()
        expect(yield* recorded(event, 1)).toEqual({ state: "SUCCESSFUL", codes: [null] })
        yield* released
        yield* forgotten(event)
      }
    })
  )

  it.effect("A delivery that ended a process is repeated alone, and is then like any other", () =>
    Effect.gen(function* () {
      const { arrived, latch } = yield* held
      const { event, wake } = yield* waiting()
      yield* ended(event, 1)
      yield* wake
      yield* arrived
      expect(yield* rowOf(event)).toEqual({ ends: 1, alone: true })
      latch.openUnsafe()
      expect(yield* recorded(event, 1)).toEqual({ state: "SUCCESSFUL", codes: [null] })
      yield* released
      yield* forgotten(event)
    })
  )

  it.effect(
    "A delivery that ended three processes fails for good with its own cause, and later events are delivered",
    () =>
      Effect.gen(function* () {
        const calls = yield* Calls
        const { connection, event, wake } = yield* waiting([linear(1_000, 5)])
        yield* ended(event, 3)
        const before = yield* Queue.size(calls)
        yield* wake
        expect(yield* recorded(event, 1)).toEqual({ state: "FAILED", codes: ["PROCESS_ENDED"] })
        yield* released
        expect(yield* Queue.size(calls)).toBe(before)
        yield* forgotten(event)
        const next = yield* waiting([], undefined, "{}", connection)
        yield* next.wake
        expect((yield* recorded(next.event, 1)).state).toBe("SUCCESSFUL")
        yield* released
      })
  )
})
