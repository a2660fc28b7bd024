import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { ensurePartitions } from "../../src/retention/Partitions.ts"
import { filterKey } from "../../src/reads/Cursor.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import * as ExecutionReads from "../../src/reads/ExecutionReads.ts"
import * as RequestReads from "../../src/reads/RequestReads.ts"
import * as TraceReads from "../../src/reads/TraceReads.ts"
import { retryEvent } from "../../src/bulk/EventRetry.ts"
import * as ControlPlane from "../controlPlane.ts"
import { anyEvent } from "./Filters.ts"
import { insertProxyExchange, insertTransformed } from "./Transformed.ts"

const { createConnection, insertEvent, otherTeam, team, unique } = ControlPlane

/** A transformation's row, and a connection that its executions are said to belong to. */
const setting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const transformationId = newId(prefixes.transformation, Date.now())
  yield* sql`insert into transformations (id, team_id, name, code, code_hash, created_at, updated_at)
    values (${transformationId}, ${team}, ${unique("transformation")}, 'code', 'hash', now(), now())`
  return { team, transformationId, connection: yield* createConnection() }
})

const day = 86_400_000

layer(ControlPlane.layer, { excludeTestServices: true })("Reads of executions", (it) => {
  it.effect("Executions are listed newest first, page by page, over any number of days", () =>
    Effect.gen(function* () {
      const { transformationId, ...where } = yield* setting
      for (const days of [3, 6]) yield* ensurePartitions(Date.now() - days * day)
      const made: Array<string> = []
      for (let i = 0; i < 23; i++) {
        const at = Date.now() - i * 5 * 3_600_000 - 1000
        const logLevel = ["debug", "info", "warn"][i % 3]!
        made.push((yield* insertTransformed({ ...where, transformationId, at, logLevel })).execution)
      }
      // Neither another transformation's nor another team's.
      yield* insertTransformed({ ...where, transformationId: "trs_other" })
      yield* insertTransformed({ ...where, transformationId, team: otherTeam })
      const pages = Effect.fnUntraced(function* (
        window: { readonly from?: string; readonly to?: string },
        logLevels: ReadonlyArray<"debug" | "info" | "warn">
      ) {
        const found: Array<string> = []
        let cursor: string | undefined
        do {
          const key = filterKey("executions", { logLevels, ...window })
          const page = yield* ExecutionReads.list(
            team,
            transformationId,
            { logLevels },
            { key, window, cursor, limit: 4 }
          )
          expect(page.count).toBeLessThanOrEqual(4)
          found.push(...page.models.map(({ id }) => id))
          expect([page.total, page.total_exact]).toStrictEqual([found.length, page.next_cursor === null])
          cursor = page.next_cursor ?? undefined
        } while (cursor !== undefined)
        return found
      })
      expect(yield* pages({}, [])).toStrictEqual(made)
      expect(yield* pages({}, ["debug", "warn"])).toStrictEqual(made.filter((_, i) => i % 3 !== 1))
      // One every five hours.
      expect(yield* pages({ from: "now-26h", to: "now-4h" }, [])).toStrictEqual(made.slice(1, 6))
    })
  )

  it.effect("An execution shows its input, its result and its log", () =>
    Effect.gen(function* () {
      const where = yield* setting
      const logs = [{ type: "warn", message: "careful" }]
      const made = { body: '{"b":2}', path: "/elsewhere" }
      const { eventData, event, execution, originalData, request } = yield* insertTransformed({
        ...where,
        made,
        logs,
        logLevel: "warn"
      })
      const detail = yield* ExecutionReads.get(team, where.transformationId, execution)
      const { created_at } = detail
      const base = {
        content_type: "application/json",
        is_large_payload: false,
        encoding: "json" as const,
        size_bytes: 7
      }
      const headers = { "content-type": "application/json" }
      expect(detail).toStrictEqual({
        id: execution,
        team_id: team,
        event_id: event,
        webhook_id: where.connection.id,
        connection_id: where.connection.id,
        source_id: where.connection.source_id,
        request_id: request,
        transformation_id: where.transformationId,
        original_event_data_id: originalData,
        transformed_event_data_id: eventData,
        runtime: "js-v1",
        code_hash: "hash",
        error_code: null,
        error_message: null,
        stats: { duration_ms: 1.5, memory_bytes: 4096 },
        log_level: "warn",
        logs: [{ type: "warn", message: "careful" }],
        logs_truncated: false,
        created_at,
        updated_at: created_at,
        original_event_data: {
          ...base,
          method: "POST",
          path: "/in",
          query: "q=1",
          parsed_query: { q: "1" },
          headers,
          body: { a: 1 }
        },
        transformed_event_data: {
          ...base,
          method: "PUT",
          path: "/elsewhere",
          query: "q=2",
          parsed_query: { q: "2" },
          headers,
          body: { b: 2 }
        }
      })
      for (const [teamId, transformation, id] of [
        [otherTeam, where.transformationId, execution],
        [team, "trs_other", execution],
        [team, where.transformationId, "txe_unknown"]
      ] as const) {
        const error = yield* Effect.flip(
          Effect.catchTag(ExecutionReads.get(teamId, transformation, id), "SqlError", Effect.die)
        )
        expect(error.code).toBe("NOT_FOUND")
      }
    })
  )

  it.effect("An execution shows an unchanged body, and nothing after a failure or retention", () =>
    Effect.gen(function* () {
      const where = yield* setting
      const get = (execution: string) => ExecutionReads.get(team, where.transformationId, execution)
      const same = yield* get(
        (yield* insertTransformed({ ...where, made: { body: "same", headers: { "content-type": "text/plain" } } }))
          .execution
      )
      expect(same.original_event_data?.body).toStrictEqual({ a: 1 })
      expect(same.transformed_event_data).toMatchObject({
        method: "PUT",
        body: '{"a":1}',
        encoding: "text",
        size_bytes: 7
      })

      const unchanged = yield* get((yield* insertTransformed(where)).execution)
      expect(unchanged.transformed_event_data_id).toBe(unchanged.original_event_data_id)
      expect(unchanged.transformed_event_data).toStrictEqual(unchanged.original_event_data)

      const failed = yield* get((yield* insertTransformed({ ...where, error: "RUNTIME_ERROR" })).execution)
      expect(failed).toMatchObject({
        event_id: null,
        error_code: "RUNTIME_ERROR",
        error_message: "it threw",
        log_level: "fatal",
        transformed_event_data_id: null,
        transformed_event_data: null
      })
      // An error in the log alone keeps nothing from being made.
      const noted = yield* get(
        (yield* insertTransformed({ ...where, logLevel: "error", made: { body: "1" } })).execution
      )
      expect(noted.transformed_event_data?.body).toBe(1)

      const pruned = yield* get((yield* insertTransformed({ ...where, body: null, made: { body: "same" } })).execution)
      expect([pruned.original_event_data, pruned.transformed_event_data]).toStrictEqual([null, null])
    })
  )

  it.effect("The result of an execution is sent by its event and by a retry of that event", () =>
    Effect.gen(function* () {
      const where = yield* setting
      const { event, eventData } = yield* insertTransformed({ ...where, made: { body: '{"b":2}' } })
      const shown = yield* EventReads.get(team, event!)
      expect(shown.event_data_id).toBe(eventData)
      const sent = { method: "PUT", path: "/out", query: "q=2", body: { b: 2 } }
      expect(shown.data?.request).toMatchObject(sent)
      const retried = yield* retryEvent({
        team_id: team,
        event_id: event!,
        id: newId(prefixes.event, Date.now()),
        shardOf: () => 1
      })
      const again = yield* EventReads.get(team, retried.id)
      expect(again.event_data_id).toBe(eventData)
      expect(again.data?.request).toMatchObject(sent)

      const plain = yield* insertEvent(where.connection, { state: "FAILED", body: '{"plain":true}' })
      const both = yield* EventReads.list(
        team,
        { ...anyEvent, connections: [where.connection.id] },
        { key: "", window: {}, cursor: undefined, limit: 10 },
        { data: true }
      )
      const bodies = new Map(both.models.map(({ data, id }) => [id, data?.request.body]))
      expect(bodies).toStrictEqual(
        new Map<string, unknown>([
          [event!, { b: 2 }],
          [retried.id, { b: 2 }],
          [plain, { plain: true }]
        ])
      )
    })
  )

  it.effect("An event can be retried while its result exists, even without the request's body", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const where = yield* setting
      const refusal = (event_id: string | null) =>
        Effect.match(
          retryEvent({ team_id: team, event_id: event_id!, id: newId(prefixes.event, Date.now()), shardOf: () => 1 }),
          {
            onFailure: ({ code }) => code,
            onSuccess: () => "retried"
          }
        )
      const own = yield* insertTransformed({ ...where, body: null, made: { body: "own" } })
      expect(yield* refusal(own.event)).toBe("retried")
      const shared = yield* insertTransformed({ ...where, body: null, made: { body: "same" } })
      expect(yield* refusal(shared.event)).toBe("PAYLOAD_UNAVAILABLE")
      const kept = yield* insertTransformed({ ...where, made: { body: "same" } })
      expect(yield* refusal(kept.event)).toBe("retried")
      const gone = yield* insertTransformed({ ...where, made: { body: "own" } })
      yield* sql`delete from event_data where id = ${gone.eventData}`
      expect(yield* refusal(gone.event)).toBe("PAYLOAD_UNAVAILABLE")
      expect((yield* EventReads.get(team, gone.event!)).data).toBe(null)
    })
  )

  it.effect("The trace of a request shows its executions and its proxy exchange", () =>
    Effect.gen(function* () {
      const where = yield* setting
      const { event, execution, request } = yield* insertTransformed({ ...where, made: { body: '{"b":2}' } })
      const exchangeId = yield* insertProxyExchange(team, where.connection.source_id, request, {
        status: 201,
        body: Buffer.from([0xff, 0])
      })
      const trace = yield* TraceReads.get(team, request)
      expect(trace.transformations).toStrictEqual([yield* ExecutionReads.get(team, where.transformationId, execution)])
      expect(trace.transformations_by_event_id).toStrictEqual({ [event!]: trace.transformations })
      expect(trace.counts).toStrictEqual({
        events: 1,
        ignored_events: 0,
        attempts: 0,
        skipped_connections: 0,
        workflow_runs: 0,
        transformations: 1,
        proxy_exchanges: 1
      })
      expect(trace.proxy_exchange).toMatchObject({
        id: exchangeId,
        request_id: request,
        response_status: 201,
        response_headers: { "x-a": ["1", "2"] },
        response_body: "/wA=",
        response_body_encoding: "base64",
        response_latency: 12,
        error_code: null
      })
      expect((yield* RequestReads.detail(team, request)).proxy_exchange).toStrictEqual(trace.proxy_exchange)
      expect(
        trace.timeline.map(({ kind, status }) => [kind, status]).toSorted(([a], [b]) => (a! < b! ? -1 : 1))
      ).toStrictEqual([
        ["event", "FAILED"],
        ["proxy_exchange", "201"],
        ["request", "accepted"],
        ["transformation", "SUCCESSFUL"]
      ])
      const transformation = trace.timeline.find(({ kind }) => kind === "transformation")
      expect(transformation).toMatchObject({
        transformation_execution_id: execution,
        event_id: event!,
        connection_id: where.connection.id
      })
      expect(trace.timeline.find(({ kind }) => kind === "proxy_exchange")).toMatchObject({
        proxy_exchange_id: exchangeId
      })
      expect(trace.truncated).toBe(false)
    })
  )

  it.effect("Failed executions and upstream calls are in the trace without an event", () =>
    Effect.gen(function* () {
      const where = yield* setting
      const { execution, request } = yield* insertTransformed({ ...where, error: "TIMEOUT" })
      yield* insertProxyExchange(team, where.connection.source_id, request, null)
      const trace = yield* TraceReads.get(team, request)
      expect(trace.transformations_by_event_id).toStrictEqual({})
      const statuses = new Map(trace.timeline.map(({ kind, status }) => [kind, status]))
      expect(statuses.get("transformation")).toBe("TIMEOUT")
      expect(statuses.get("proxy_exchange")).toBe("TIMEOUT")
      const failed = trace.timeline.find(({ kind }) => kind === "transformation")
      expect(failed?.transformation_execution_id).toBe(execution)
      expect(failed).not.toHaveProperty("event_id")
      expect(trace.proxy_exchange).toMatchObject({ response_status: null, response_headers: null, response_body: null })
      // Another request of the same millisecond has nothing of it.
      const other = yield* insertTransformed({ ...where, at: Date.parse(trace.request.created_at) })
      expect((yield* TraceReads.get(team, other.request)).counts.proxy_exchanges).toBe(0)
      expect((yield* TraceReads.get(team, request)).transformations.map(({ id }) => id)).toStrictEqual([execution])
    })
  )

  it.effect("Lists show the first lines of a long log, and the detail shows all", () =>
    Effect.gen(function* () {
      const where = yield* setting
      const logs = Array.from({ length: 100 }, (_, i) => ({
        type: "log" as const,
        message: `${i} ${"\u0000".repeat(700)}`
      }))
      const { execution, request } = yield* insertTransformed({ ...where, logs })
      const first = { logs: logs.slice(0, 4), logs_truncated: true }
      const page = { key: "", window: {}, cursor: undefined, limit: 10 }
      const { models } = yield* ExecutionReads.list(team, where.transformationId, { logLevels: [] }, page)
      expect(models[0]).toMatchObject(first)
      expect((yield* TraceReads.get(team, request)).transformations[0]).toMatchObject(first)
      const detail = yield* ExecutionReads.get(team, where.transformationId, execution)
      expect(detail).toMatchObject({ logs, logs_truncated: false })
    })
  )

  it.effect("Large bodies are omitted from the trace, but not from the execution", () =>
    Effect.gen(function* () {
      const where = yield* setting
      const body = JSON.stringify({ text: "x".repeat(70_000) })
      const { execution, request } = yield* insertTransformed({ ...where, made: { body } })
      const [traced] = (yield* TraceReads.get(team, request)).transformations
      expect(traced?.transformed_event_data).toMatchObject({
        body: null,
        is_large_payload: true,
        size_bytes: body.length
      })
      const detail = yield* ExecutionReads.get(team, where.transformationId, execution)
      expect(detail.transformed_event_data?.body).toStrictEqual(JSON.parse(body))
    })
  )
})
