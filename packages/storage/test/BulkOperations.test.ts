import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Exit } from "effect"
import { SqlClient, Statement } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { cancelOperation, createOperation, getOperation, listOperations } from "../src/bulk/BulkOperations.ts"
import { stepOperation } from "../src/bulk/BulkSteps.ts"
import { liveTraffic, stillWaiting } from "../src/bulk/LiveTraffic.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createConnection, insertEvent, otherTeam, team } = ControlPlane

const routing = { shardOf: () => 7, orderingKeyOf: () => null }
const type = "event_bulk_retry" as const
const of = "events" as const

/** An operation over the failed events of a connection. */
const operation = Effect.fnUntraced(function* (connection: { readonly id: string }, rate: number | null = null) {
  const id = newId(prefixes.bulkOperation, Date.now())
  const filter = {
    from: new Date(Date.now() - 3_600_000).toISOString(),
    to: new Date().toISOString(),
    status: ["FAILED"],
    connection_id: [connection.id]
  }
  return yield* createOperation({
    team_id: team,
    type,
    id,
    filter,
    rate,
    confirmed: true,
    requested_by: null,
    shard: 1
  })
})

const failed = (connection: Parameters<typeof insertEvent>[0], count: number) =>
  Effect.forEach(Array.from({ length: count }), () => insertEvent(connection, { state: "FAILED" }))

const none = { events: [], requests: [], cancelled: [], pauseMs: 0 }
const quickly = (targets: number) => ({ targets, overMs: 0 })

/** Steps to the end of it. */
const carryOut = Effect.fnUntraced(function* (id: string, batch: number) {
  while (!(yield* stepOperation(id, quickly(batch), routing)).isOver) continue
  return yield* getOperation({ team_id: team, of, id })
})

const retriesOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ parent: string }>`
    select retry_parent_event_id as parent from events where retry_operation_id = ${id} order by id`
  return rows.map(({ parent }) => parent)
})

layer(ControlPlane.layer, { excludeTestServices: true })("Bulk operations", (it) => {
  it.effect("A plan with a cursor of another version starts again and finds each target once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const events = yield* failed(connection, 3)
      const { id } = yield* operation(connection)
      yield* sql`update bulk_operations set plan_cursor = 'eyJmIjoiIn0' where id = ${id}`
      expect(yield* carryOut(id, 10)).toMatchObject({ status: "COMPLETED", total_count: 3 })
      expect(yield* retriesOf(id)).toHaveLength(events.length)
    })
  )

  it.effect("A bulk operation is planned and then handles each target once", () =>
    Effect.gen(function* () {
      const connection = yield* createConnection()
      const events = yield* failed(connection, 25)
      yield* insertEvent(connection, { state: "SUCCESSFUL" })
      const { id, status } = yield* operation(connection)
      expect(status).toBe("PLANNED")
      const planned = yield* stepOperation(id, quickly(10), routing)
      expect(planned).toEqual({ ...none, isOver: false, part: 1 })
      expect(yield* getOperation({ team_id: team, of, id })).toMatchObject({ status: "RUNNING", total_count: 25 })
      // What fails after the plan is no part of it.
      yield* failed(connection, 2)
      const made = yield* stepOperation(id, quickly(10), routing)
      expect(made.events.map(({ destination_id }) => destination_id)).toEqual(
        Array.from({ length: 10 }, () => connection.destination_id)
      )
      const ids = made.events.map((event) => event.id)
      expect(yield* stillWaiting([], ids)).toBe(10)
      expect(yield* carryOut(id, 10)).toMatchObject({
        status: "COMPLETED",
        total_count: 25,
        queued_count: 25,
        failed_count: 0,
        cancelable: false
      })
      expect((yield* retriesOf(id)).toSorted()).toEqual(events.toSorted())
      // Retries of its own are younger than all that it could find.
      const again = yield* operation(connection)
      expect(yield* carryOut(again.id, 100)).toMatchObject({ total_count: 27 })
    })
  )

  it.effect("A bulk retry skips resolved events, even without a note or resolved after the plan", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const [before, since, open] = (yield* failed(connection, 3)) as [string, string, string]
      const retry = yield* insertEvent(connection, { state: "SUCCESSFUL", rootEventId: before })
      yield* sql`update events set retry_parent_event_id = ${before}, retry_kind = 'single', successful_at = now(),
        request_id = (select request_id from events where id = ${before}) where id = ${retry}`
      yield* sql`update events set retried_at = now() where id = ${before}`
      const id = newId(prefixes.bulkOperation, Date.now())
      const filter = {
        from: new Date(Date.now() - 3_600_000).toISOString(),
        to: new Date().toISOString(),
        connection_id: [connection.id],
        status: ["FAILED"],
        resolved: false
      }
      const asked = { team_id: team, type, id, filter, rate: null, confirmed: true, requested_by: null, shard: 1 }
      yield* createOperation(asked)
      yield* stepOperation(id, quickly(10), routing)
      yield* sql`update events set resolved_at = now(), resolved_by_event_id = 'evt_x' where id = ${since}`
      expect(yield* carryOut(id, 10)).toMatchObject({ total_count: 3, queued_count: 1, failed_count: 2 })
      expect(yield* retriesOf(id)).toEqual([open])
      const [noted] =
        yield* sql`select resolved_by_event_id as by, resolved_at is not null as at from events where id = ${before}`
      expect(noted).toEqual({ by: retry, at: true })
      // The next plan does not find it.
      const again = newId(prefixes.bulkOperation, Date.now())
      yield* createOperation({ ...asked, id: again, confirmed: false })
      yield* stepOperation(again, quickly(10), routing)
      expect(yield* getOperation({ team_id: team, of, id: again })).toMatchObject({ total_count: 1, sample: [open] })
    })
  )

  it.effect("A bulk operation keeps its rate and handles at most a fifth of a second's targets per step", () =>
    Effect.gen(function* () {
      const connection = yield* createConnection()
      yield* failed(connection, 12)
      const { id } = yield* operation(connection, 25)
      yield* stepOperation(id, quickly(100), routing)
      const { events, pauseMs } = yield* stepOperation(id, quickly(100), routing)
      expect([events.length, pauseMs]).toEqual([5, 200])
      const limited = yield* stepOperation(id, quickly(2), routing)
      expect([limited.events.length, limited.pauseMs]).toEqual([2, 80])
    })
  )

  it.effect("A bulk operation spreads the due times of its events when it is told to", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      yield* failed(connection, 20)
      const { id } = yield* operation(connection)
      const share = { targets: 20, overMs: 1_000 }
      yield* stepOperation(id, share, routing)
      expect((yield* stepOperation(id, share, routing)).part).toBe(1)
      const due = yield* sql<{ late: number; count: number }>`
        select (extract(epoch from d.due_at - e.created_at) * 1000)::int4 as late, count(*)::int4 as count
        from events e join deliveries d on d.event_id = e.id and d.due_at = e.due_at where e.retry_operation_id = ${id}
        group by 1 order by 1`
      expect(due).toEqual(Array.from({ length: 20 }, (_, n) => ({ late: n * 50, count: 1 })))
    })
  )

  it.effect("Retries with an ordering key wait in their order and get no due time of their own", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      yield* failed(connection, 6)
      yield* sql`update events set ordering_key = 'line' where connection_id = ${connection.id}`
      yield* sql`update connections set ordering = '{"key":"body.id"}' where id = ${connection.id}`
      const { id } = yield* operation(connection)
      yield* stepOperation(id, { targets: 6, overMs: 600 }, routing)
      yield* stepOperation(id, { targets: 6, overMs: 600 }, routing)
      const made = yield* sql`
        select e.due_at = e.created_at as due, d.ready_at = e.created_at as ready, d.place is not null as placed
        from events e join deliveries d on d.event_id = e.id where e.retry_operation_id = ${id}`
      expect(made).toEqual(Array.from({ length: 6 }, () => ({ due: true, ready: true, placed: true })))
    })
  )

  it.effect("Concurrent workers of a bulk operation handle each target once", () =>
    Effect.gen(function* () {
      const connection = yield* createConnection()
      const events = yield* failed(connection, 30)
      const { id } = yield* operation(connection)
      yield* Effect.all([carryOut(id, 3), carryOut(id, 4), carryOut(id, 5)], { concurrency: "unbounded" })
      expect((yield* retriesOf(id)).toSorted()).toEqual(events.toSorted())
      expect(yield* getOperation({ team_id: team, of, id })).toMatchObject({ status: "COMPLETED", queued_count: 30 })
    })
  )

  it.effect("A bulk operation that is interrupted at any statement reaches the same result", () =>
    Effect.gen(function* () {
      const connection = yield* createConnection()
      const events = yield* failed(connection, 4)
      const { id } = yield* operation(connection)
      // Each try comes one statement further than the one before, until one comes to the end.
      let over = false
      let tries = 0
      for (let n = 1; !over; n++) {
        let count = 0
        tries++
        const step = Effect.provideService(
          stepOperation(id, quickly(2), routing),
          Statement.CurrentTransformer,
          (statement) => (++count < n ? Effect.succeed(statement) : Effect.die("cut off"))
        )
        over = yield* Effect.matchCause(step, { onFailure: () => false, onSuccess: ({ isOver }) => isOver })
        const done = yield* retriesOf(id)
        const { queued_count } = yield* getOperation({ team_id: team, of, id })
        expect(queued_count).toBe(done.length)
      }
      expect(tries).toBeGreaterThan(5)
      expect((yield* retriesOf(id)).toSorted()).toEqual(events.toSorted())
    })
  )

  it.effect("A bulk operation can be cancelled until its end, and then does nothing more", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      yield* failed(connection, 5)
      const { id } = yield* operation(connection)
      const which = { team_id: team, of, id }
      yield* stepOperation(id, quickly(2), routing)
      yield* stepOperation(id, quickly(2), routing)
      expect(yield* cancelOperation(which)).toMatchObject({ status: "CANCELLED", queued_count: 2, cancelable: false })
      expect(yield* stepOperation(id, quickly(2), routing)).toEqual({ ...none, isOver: true, part: 0 })
      expect((yield* retriesOf(id)).length).toBe(2)
      expect(yield* sql`select from bulk_targets where operation_id = ${id}`).toEqual([])
      expect((yield* Effect.flip(cancelOperation(which))).code).toBe("BULK_OPERATION_NOT_CANCELABLE")
    })
  )

  it.effect("A bulk operation is only visible to its team and under its own type", () =>
    Effect.gen(function* () {
      const { id } = yield* operation(yield* createConnection())
      for (const which of [
        { team_id: otherTeam, of, id },
        { team_id: team, of: "requests" as const, id }
      ]) {
        expect((yield* Effect.flip(getOperation(which))).code).toBe("NOT_FOUND")
        expect((yield* Effect.flip(cancelOperation(which))).code).toBe("NOT_FOUND")
      }
      const page = { key: "k", cursor: undefined, limit: 1 }
      expect((yield* listOperations({ team_id: otherTeam, of }, "all", page)).models).toEqual([])
      expect((yield* listOperations({ team_id: team, of }, "ongoing", page)).models.map((one) => one.id)).toEqual([id])
    })
  )

  it.effect("A team has at most fifty bulk operations, however many it starts at once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      yield* sql`update bulk_operations set finished_at = now()`
      const asked = yield* Effect.all(
        Array.from({ length: 55 }, () => Effect.exit(operation(connection))),
        { concurrency: 10 }
      )
      expect(asked.filter(Exit.isSuccess).length).toBe(50)
      expect((yield* Effect.flip(operation(connection))).code).toBe("TEAM_LIMIT_REACHED")
      yield* sql`update bulk_operations set finished_at = now()`
    })
  )

  it.effect("Bulk operations yield to live requests, but not to replays", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const clock = yield* Clock.Clock
      const now = Date.now()
      const at: Clock.Clock = Object.assign(Object.create(clock), {
        currentTimeMillis: Effect.succeed(now),
        currentTimeMillisUnsafe: () => now
      })
      const live = Effect.map(Effect.provideService(liveTraffic, Clock.Clock, at), ({ requests }) => requests)
      yield* sql`update requests set retry_kind = 'bulk'`
      expect(yield* live).toBe(0)
      yield* insertEvent(yield* createConnection())
      expect(yield* live).toBe(1)
      yield* sql`update requests set retry_kind = 'bulk'`
      expect(yield* live).toBe(0)
    })
  )
})
