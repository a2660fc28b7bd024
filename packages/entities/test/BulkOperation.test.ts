import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { createOperation, getOperation } from "@tidegate/storage/bulk/BulkOperations"
import { stepOperation } from "@tidegate/storage/bulk/BulkSteps"
import { haveAlone, takeInHand } from "@tidegate/storage/delivery/WorkInHand"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import * as BulkOperationBehaviour from "../src/BulkOperation/BulkOperationBehaviour.ts"
import { BulkOperationEntity } from "../src/BulkOperation/BulkOperationProtocol.ts"
import { replayRouting } from "../src/Replay.ts"
import { shardOf } from "../src/Shards.ts"
import { world } from "./RouteWorld.ts"

/** The actor over the real database: it works until its operation is over, whatever was done of it before, and whoever ends it. */

const { createConnection, insertEvent, team: team_id } = ControlPlane
const type = "event_bulk_retry" as const
const of = "events" as const

/** More than one step of any pace takes. */
const many = 260

/** An operation over so many failed events, which nobody has woken. */
const created = Effect.fnUntraced(function* (count: number) {
  const connection = yield* createConnection()
  const events = yield* Effect.forEach(
    Array.from({ length: count }),
    () => insertEvent(connection, { state: "FAILED" }),
    { concurrency: 4 }
  )
  const id = newId(prefixes.bulkOperation, Date.now())
  const filter = {
    from: new Date(Date.now() - 3_600_000).toISOString(),
    to: new Date(Date.now() + 1_000).toISOString(),
    status: ["FAILED"],
    connection_id: [connection.id]
  }
  const shard = shardOf(yield* Sharding.Sharding, id)
  yield* createOperation({ team_id, type, id, filter, rate: null, confirmed: true, requested_by: null, shard })
  return { actor: (yield* BulkOperationEntity.client)(id), events, id }
})

const retriesOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ parent: string }>`
    select retry_parent_event_id as parent from events where retry_operation_id = ${id}`
  return rows.map(({ parent }) => parent).toSorted()
})

layer(BulkOperationBehaviour.layer.pipe(Layer.provideMerge(world)), { excludeTestServices: true })(
  "Actor of a bulk operation",
  (it) => {
    it.effect("A bulk operation runs from its first step to its last, however often it is woken", () =>
      Effect.gen(function* () {
        const { actor, events, id } = yield* created(many)
        yield* Effect.all([actor.Wake(), actor.Wake()], { concurrency: "unbounded" })
        expect(yield* getOperation({ team_id, of, id })).toMatchObject({
          status: "COMPLETED",
          total_count: many,
          queued_count: many
        })
        expect(yield* retriesOf(id)).toEqual(events.toSorted())
      })
    )

    it.effect("A bulk operation continues where another process stopped", () =>
      Effect.gen(function* () {
        const { actor, events, id } = yield* created(20)
        const share = { targets: 7, overMs: 0 }
        const routing = yield* replayRouting
        yield* stepOperation(id, share, routing)
        yield* stepOperation(id, share, routing)
        yield* actor.Wake()
        expect(yield* getOperation({ team_id, of, id })).toMatchObject({ status: "COMPLETED", queued_count: 20 })
        expect(yield* retriesOf(id)).toEqual(events.toSorted())
      })
    )

    it.effect("A bulk operation that ended three processes fails, and its targets stay unchanged", () =>
      Effect.gen(function* () {
        const { actor, events, id } = yield* created(3)
        const operation = { kind: "bulk", id, team_id } as const
        yield* takeInHand("prc_a", [operation])
        for (const process of ["prc_b", "prc_c"]) {
          yield* takeInHand(process, [operation])
          yield* haveAlone(process, operation, true)
        }
        yield* actor.Wake()
        expect(yield* getOperation({ team_id, of, id })).toMatchObject({
          status: "FAILED",
          queued_count: 0,
          error: { code: "PROCESS_ENDED" }
        })
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select id from work_in_hand where id = ${id}`).toEqual([])
        const rows = yield* sql<{ state: string }>`select state from events where id = any(${[...events]})`
        expect(rows.map(({ state }) => state)).toEqual(["FAILED", "FAILED", "FAILED"])
      })
    )

    it.effect("A bulk operation that is cancelled during a step completes this step and no other", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { actor, events, id } = yield* created(many)
        const waiting = (count: number) =>
          sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.pipe(
            Effect.filterOrFail((rows) => rows.length >= count),
            Effect.retry({ schedule: Schedule.spaced("10 millis"), times: 3_000 })
          )
        const held = yield* Deferred.make<void>()
        const release = yield* Deferred.make<void>()
        // The first event of the first step: it waits for this row.
        yield* sql`select 1 from events where id = ${events.toSorted()[0]!} for update`.pipe(
          Effect.andThen(Deferred.succeed(held, undefined)),
          Effect.andThen(Deferred.await(release)),
          sql.withTransaction,
          Effect.forkChild
        )
        yield* Deferred.await(held)
        const working = yield* Effect.forkChild(actor.Wake())
        yield* waiting(1)
        const cancelling = yield* Effect.forkChild(actor.End({ team_id, of }))
        yield* waiting(2)
        yield* Deferred.succeed(release, undefined)
        const cancelled = yield* Fiber.join(cancelling)
        yield* Fiber.join(working)
        expect(cancelled.status).toBe("CANCELLED")
        const retried = yield* retriesOf(id)
        expect(retried).toEqual(events.toSorted().slice(0, cancelled.queued_count))
        expect(retried.length).toBeGreaterThan(0)
        expect(retried.length).toBeLessThan(many)
        // It is over: nobody finds more to do.
        yield* actor.Wake()
        expect((yield* retriesOf(id)).length).toBe(retried.length)
      })
    )
  }
)
