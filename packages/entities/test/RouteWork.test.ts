import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { derivedId, prefixes, sibling } from "@tidegate/model/Ids"
import type { Rule } from "@tidegate/model/Rule"
import { Connections } from "@tidegate/storage/control/Connections"
import { pendingEvents } from "@tidegate/storage/delivery/DeliveryRows"
import { loadTransformation, Transformations } from "@tidegate/storage/control/Transformations"
import { haveAlone, takeInHand } from "@tidegate/storage/delivery/WorkInHand"
import { setAside } from "../src/InHand.ts"
import {
  deduplicate,
  handed,
  noTransformation,
  type Outcome,
  pending,
  sandbox,
  type Sent,
  stored,
  team,
  transformation,
  workOffPendingRoutes,
  world
} from "./RouteWorld.ts"

layer(world, { excludeTestServices: true })("Routing jobs", (it) => {
  it.effect("A routing job becomes an event or an ignored event in one commit, after delay and filter", () =>
    Effect.gen(function* () {
      const rules: ReadonlyArray<Rule> = [
        deduplicate,
        { type: "filter", path: { $neq: "/no" } },
        { type: "delay", delay: 5000 }
      ]
      const sent = [
        { path: "/a", body: { id: 1 } },
        { path: "/twin", body: { id: 1 } },
        { path: "/no", body: { id: 2 } },
        { path: "/b", body: { id: 3 } }
      ]
      const { connection, ids } = yield* pending(rules, sent)
      yield* workOffPendingRoutes(connection.id).pipe(noTransformation.provided)
      const result = yield* stored(connection.id)
      expect(result.events.map(({ id, request_id }) => [id, request_id])).toStrictEqual(
        [ids[0]!, ids[3]!].map((id) => [derivedId(prefixes.event, id, connection.id), id])
      )
      expect(result.events.every(({ delay, queued }) => queued && Math.abs(delay - 5000) < 100)).toBe(true)
      expect(result.ignored.map(({ cause, request_id }) => [request_id, cause])).toStrictEqual([
        [ids[1]!, "DEDUPLICATED"],
        [ids[2]!, "FILTERED"]
      ])
      expect((result.ignored[0]!.meta as ReadonlyArray<object>)[0]).toMatchObject({ first_request_id: ids[0]! })
      expect(result.left).toBe(0)
      expect(result.counts.map((row) => [row.events_count, row.ignored_count])).toStrictEqual([
        [1, 0],
        [0, 1],
        [0, 1],
        [1, 0]
      ])
    })
  )

  it.effect("Routing jobs with large bodies are stored as in progress and set aside after three crashes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = yield* transformation()
      const large = "x".repeat(70_000)
      const { connection, ids } = yield* pending(
        [{ type: "transform", transformation_id: id }],
        [
          { path: "/deadly", body: large },
          { path: "/large", body: large },
          { path: "/small", body: 1 }
        ]
      )
      const routes = ids.map((request) => derivedId(prefixes.event, request, connection.id))
      const deadly = { kind: "route", id: routes[0]!, team_id: team } as const
      yield* takeInHand("prc_a", [deadly])
      for (const process of ["prc_b", "prc_c"]) {
        yield* takeInHand(process, [deadly])
        yield* haveAlone(process, deadly, true)
      }
      const inHand = sql<{ id: string }>`select id from work_in_hand where kind = 'route' and id = any(${routes})`
      const seen: Array<readonly [path: string, written: boolean]> = []
      const context = yield* Effect.context<SqlClient.SqlClient>()
      const { provided } = sandbox(({ request }) =>
        Effect.provide(
          Effect.map(Effect.orDie(inHand), (rows): Outcome => {
            const own = routes[["/deadly", "/large", "/small"].indexOf(request.path)]
            seen.push([request.path, rows.some((row) => row.id === own)])
            return {}
          }),
          context
        )
      )
      yield* workOffPendingRoutes(connection.id).pipe(provided)
      expect(seen.toSorted(([a], [b]) => a.localeCompare(b))).toEqual([
        ["/large", true],
        ["/small", false]
      ])
      const result = yield* stored(connection.id)
      expect(result.events.map(({ request_id }) => request_id)).toEqual(ids.slice(1))
      expect(result.ignored).toMatchObject([
        { request_id: ids[0], cause: "PROCESS_ENDED", meta: [{ message: setAside.message }] }
      ])
      expect(result.left).toBe(0)
      expect(yield* inHand).toEqual([])
    })
  )

  it.effect("Requests are duplicates until the deduplication window of the first event ends", () =>
    Effect.gen(function* () {
      const at = (ms: number): Sent => ({ path: `/${ms}`, body: { id: 1 }, at: ms })
      const { connection, ids } = yield* pending([deduplicate], [at(0), at(999), at(1000), at(1999), at(2000)])
      yield* workOffPendingRoutes(connection.id).pipe(noTransformation.provided)
      const result = yield* stored(connection.id)
      expect(result.events.map((event) => event.request_id)).toStrictEqual([ids[0]!, ids[2]!, ids[4]!])
      const sql = yield* SqlClient.SqlClient
      const [window] = yield* sql<{ request_id: string; count: number }>`
        select request_id, count(*) over ()::int4 as count from dedupe_keys where connection_id = ${connection.id}`
      expect(window).toStrictEqual({ request_id: ids[4]!, count: 1 })
    })
  )

  it.effect("Requests of one key wait for each other, and a request without event opens no window", () =>
    Effect.gen(function* () {
      const id = yield* transformation()
      const rules: ReadonlyArray<Rule> = [deduplicate, { type: "transform", transformation_id: id }]
      const sent = ["/fails", "/first", "/twin"].map((path) => ({ path, body: { id: 1 } }))
      const { connection, ids } = yield* pending(rules, sent)
      const { calls, provided } = sandbox(({ request }): Outcome =>
        request.path === "/fails" ? { error: "no \u0000" } : {}
      )
      yield* workOffPendingRoutes(connection.id).pipe(provided)
      const result = yield* stored(connection.id)
      expect(calls.map(({ request }) => request.path)).toStrictEqual(["/fails", "/first"])
      expect(
        result.ignored.map(({ cause, meta, request_id }) => [request_id, cause, (meta as ReadonlyArray<object>)[0]])
      ).toStrictEqual([
        [ids[0]!, "TRANSFORMATION_FAILED", { transformation_id: id, message: "no \ufffd (line 3)" }],
        [
          ids[2]!,
          "DEDUPLICATED",
          { first_request_id: ids[1]!, key: (result.ignored[1]!.meta as ReadonlyArray<{ key: string }>)[0]!.key }
        ]
      ])
      expect(
        result.executions.map(({ error_code, event_id, failed, log_level }) => ({
          error_code,
          event_id,
          failed,
          log_level
        }))
      ).toStrictEqual([
        { error_code: "RUNTIME_ERROR", event_id: null, failed: true, log_level: "fatal" },
        { error_code: null, event_id: result.events[0]!.id, failed: false, log_level: "info" }
      ])
    })
  )

  it.effect("An event carries the transformed request, and the next filter sees it as well", () =>
    Effect.gen(function* () {
      const id = yield* transformation({ TOKEN: "t" })
      const rules: ReadonlyArray<Rule> = [
        { type: "transform", transformation_id: id },
        { type: "filter", body: { keep: true } }
      ]
      const bodies = [{ keep: true }, { keep: false }, { keep: true, same: 1 }]
      const { connection, ids } = yield* pending(
        rules,
        bodies.map((body) => ({ path: "/in", body }))
      )
      const { calls, provided } = sandbox(({ request }) => {
        const body = request.body as { keep: boolean; same?: number }
        if (body.same === 1) return {}
        return {
          path: "/out",
          query: "b=2",
          headers: { "x-two": ["1", "2"] },
          body: { keep: body.keep, ü: "ü" },
          method: "PUT"
        }
      })
      yield* workOffPendingRoutes(connection.id).pipe(provided)
      expect(calls[0]!.env).toStrictEqual({ TOKEN: "t" })
      expect(calls[0]!.context).toMatchObject({ request_id: ids[0]!, connection_id: connection.id, team_id: team })
      const result = yield* stored(connection.id)
      const dataId = derivedId(prefixes.eventData, ids[0]!, connection.id)
      expect(result.events.map((event) => [event.request_id, event.event_data_id])).toStrictEqual([
        [ids[0]!, dataId],
        [ids[2]!, null]
      ])
      expect(result.ignored.map(({ cause, meta }) => [cause, meta])).toStrictEqual([["FILTERED", ["body"]]])
      expect(result.executions.length).toBe(3)
      expect(result.executions[0]).toMatchObject({
        event_data_id: dataId,
        transformation_id: id,
        duration: 1500,
        log_level: "info"
      })
      expect(result.executions[1]!["event_id"]).toBeNull()
      const sent = yield* pendingEvents(
        result.events.map((event) => event.id),
        1e6
      )
      expect(sent.map(({ headers, method, path, query }) => [method, path, query, JSON.parse(headers)])).toStrictEqual([
        ["PUT", "/out", "b=2", { "x-two": ["1", "2"], "content-type": "application/json" }],
        ["POST", "/in", "a=1", { "content-type": "application/json", "x-one": "1" }]
      ])
      expect(Buffer.from(sent[0]!.body!).toString()).toBe('{"keep":true,"ü":"ü"}')
      // What its destination is handed is what it would read.
      for (const row of sent) {
        const { createdAt, dueAt, payload } = yield* handed(row.id)
        expect(payload).toMatchObject({
          method: row.method,
          path: row.path,
          query: row.query,
          requestId: row.request_id
        })
        expect(payload.headers).toStrictEqual(JSON.parse(row.headers))
        expect(Buffer.from(payload.body)).toStrictEqual(Buffer.from(row.body!))
        expect([createdAt, dueAt]).toStrictEqual([row.created_at.getTime(), row.due_at.getTime()])
      }
      // Left alone, it goes out byte for byte.
      expect(Buffer.from(sent[1]!.body!).toString()).toBe(JSON.stringify(bodies[2], null, 2))
      expect(sibling(prefixes.eventData, ids[0]!)).not.toBe(dataId)
    })
  )

  it.effect("An event keeps the request's body if the transformation changed only something else", () =>
    Effect.gen(function* () {
      const rules: ReadonlyArray<Rule> = [{ type: "transform", transformation_id: yield* transformation() }]
      const { connection } = yield* pending(rules, [{ path: "/in", body: { a: [1] } }])
      yield* workOffPendingRoutes(connection.id).pipe(sandbox(() => ({ path: "/out" })).provided)
      const { events } = yield* stored(connection.id)
      const [sent] = yield* pendingEvents([events[0]!.id], 1e6)
      expect(sent!.path).toBe("/out")
      expect(Buffer.from(sent!.body!).toString()).toBe(JSON.stringify({ a: [1] }, null, 2))
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql`select body, same_body from event_data where id = ${events[0]!.event_data_id}`
      expect(row).toStrictEqual({ body: null, same_body: true })
    })
  )

  it.effect("Concurrent workers handle each routing job once", () =>
    Effect.gen(function* () {
      const rules: ReadonlyArray<Rule> = [
        deduplicate,
        { type: "transform", transformation_id: yield* transformation() }
      ]
      const sent = Array.from({ length: 450 }, (_, i) => ({ path: `/${i}`, body: { id: i >> 1 }, at: 0 }))
      const { connection } = yield* pending(rules, sent)
      const { provided } = sandbox(() => Effect.as(Effect.yieldNow, { path: "/out" }))
      yield* Effect.all(
        Array.from({ length: 4 }, () => workOffPendingRoutes(connection.id)),
        { concurrency: "unbounded" }
      ).pipe(provided)
      const result = yield* stored(connection.id)
      expect(result.events.length).toBe(225)
      expect(result.ignored.length).toBe(225)
      expect(result.executions.length).toBe(225)
      expect(result.left).toBe(0)
      expect(result.counts.every((row) => row.events_count + row.ignored_count === 1)).toBe(true)
      const sql = yield* SqlClient.SqlClient
      const [counted] = yield* sql<{ count: number }>`
        select sum(count)::int4 as count from counted where measure = 'execution_successful'
          and key_id = (select distinct transformation_id from executions where connection_id = ${connection.id})`
      expect(counted!.count).toBe(225)
    })
  )

  it.effect("Routing jobs wait while the sandbox is unavailable, and an interruption loses none", () =>
    Effect.gen(function* () {
      const rules: ReadonlyArray<Rule> = [{ type: "transform", transformation_id: yield* transformation() }]
      const { connection } = yield* pending(rules, [{ path: "/1" }, { path: "/2" }])
      yield* workOffPendingRoutes(connection.id).pipe(sandbox(() => "unavailable").provided)
      expect((yield* stored(connection.id)).left).toBe(2)
      const never = sandbox(() => Effect.never)
      yield* workOffPendingRoutes(connection.id).pipe(never.provided, Effect.timeoutOption("50 millis"))
      expect((yield* stored(connection.id)).left).toBe(2)
      yield* workOffPendingRoutes(connection.id).pipe(sandbox(() => ({})).provided)
      const result = yield* stored(connection.id)
      expect(result.left).toBe(0)
      expect(result.events.length).toBe(2)
    })
  )

  it.effect("A routing job that throws does not delay the others", () =>
    Effect.gen(function* () {
      const id = yield* transformation()
      const { connection, ids } = yield* pending(
        [{ type: "transform", transformation_id: id }],
        [{ path: "/a" }, { path: "/broken" }, { path: "/c" }]
      )
      const broken = sandbox(({ request }) => (request.path === "/broken" ? Effect.die(new Error("ours")) : {}))
      yield* workOffPendingRoutes(connection.id).pipe(broken.provided)
      const { events, left } = yield* stored(connection.id)
      expect(events.map(({ request_id }) => request_id)).toStrictEqual([ids[0], ids[2]])
      expect(left).toBe(1)
      yield* workOffPendingRoutes(connection.id).pipe(sandbox(() => ({})).provided)
      expect((yield* stored(connection.id)).left).toBe(0)
    })
  )

  it.effect("A transformation that differs in a reused isolate is pinned until its code changes", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const id = yield* transformation()
      const { connection } = yield* pending([{ type: "transform", transformation_id: id }], [{ path: "/a" }])
      const before = yield* transformations.get(team, id)
      const first = sandbox(() => ({}), "it differs\u0000")
      yield* workOffPendingRoutes(connection.id).pipe(first.provided)
      expect(first.calls.map(({ isolation }) => isolation)).toStrictEqual(["sealed"])
      const isolation_reason = "it differs\ufffd"
      const { updated_at } = before
      expect(yield* transformations.get(team, id)).toMatchObject({ isolation: null, isolation_reason, updated_at })
      expect((yield* loadTransformation(team, id))?.isolation).toBe("fresh")
      yield* transformations.update(team, id, (stored) =>
        Result.succeed({ ...stored, env: "unchanged", code: "other" })
      )
      expect((yield* transformations.get(team, id)).isolation_reason).toBe(null)
      expect((yield* loadTransformation(team, id))?.isolation).toBe("sealed")
    })
  )

  it.effect("A transformation with fresh isolation runs with fresh isolation", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const id = yield* transformation()
      yield* transformations.update(team, id, (stored) =>
        Result.succeed({ ...stored, env: "unchanged", isolation: "fresh" })
      )
      const { connection } = yield* pending([{ type: "transform", transformation_id: id }], [{ path: "/a" }])
      const { calls, provided } = sandbox(() => ({}))
      yield* workOffPendingRoutes(connection.id).pipe(provided)
      expect(calls.map(({ isolation }) => isolation)).toStrictEqual(["fresh"])
      expect(yield* transformations.get(team, id)).toMatchObject({ isolation: "fresh", isolation_reason: null })
    })
  )

  it.effect("Routing jobs use the rules at the time when they are handled", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { connection } = yield* pending([deduplicate], [{ path: "/1", body: { id: 1 } }])
      yield* connections.switch(team, connection.id, "disable")
      yield* workOffPendingRoutes(connection.id).pipe(noTransformation.provided)
      const result = yield* stored(connection.id)
      expect(result.left).toBe(0)
      expect(result.events.length).toBe(0)
    })
  )
})
