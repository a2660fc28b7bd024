import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { noteStarts } from "../src/delivery/DeliveryRows.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createConnection, insertEvent } = ControlPlane

layer(ControlPlane.layer, { excludeTestServices: true })("Start times of deliveries", (it) => {
  it.effect("Start times are stored without waiting for a row whose attempt is being recorded", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const [free, taken] = [yield* insertEvent(connection), yield* insertEvent(connection)]
      const locked = yield* Deferred.make<void>()
      const release = yield* Deferred.make<void>()
      const recording = yield* sql`select 1 from deliveries where event_id = ${taken} for update`.pipe(
        Effect.andThen(Deferred.succeed(locked, undefined)),
        Effect.andThen(Deferred.await(release)),
        sql.withTransaction,
        Effect.forkChild
      )
      yield* Deferred.await(locked)
      const at = Date.now() - 1_000
      yield* noteStarts([free, taken, "evt_none"].map((id) => [id, at] as const))
      const startOf = (id: string) =>
        Effect.map(
          sql<{ started_at: Date | null }>`select started_at from deliveries where event_id = ${id}`,
          ([row]) => row?.started_at?.getTime()
        )
      expect(yield* startOf(free)).toBe(at)
      expect(yield* startOf(taken)).toBeUndefined()
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(recording)
      yield* noteStarts([[taken, at]])
      expect(yield* startOf(taken)).toBe(at)
    })
  )
})
