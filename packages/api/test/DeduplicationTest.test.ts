import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { ensurePartitions } from "../../storage/src/retention/Partitions.ts"
import { call, layer as server, teams } from "./ControlServer.ts"

const began = Date.UTC(2026, 0, 1)
let made = 0

/** Requests are stored in the partition of their day. */
const withDay = Layer.provideMerge(Layer.effectDiscard(ensurePartitions(began)), server)

const newSource = Effect.gen(function* () {
  const { body } = yield* call("POST", "/sources", { body: { name: `tried-${++made}` } })
  return body.id as string
})

interface Stored {
  /** Milliseconds after the first request. */
  readonly at: number
  /** Null: it is not stored any more. */
  readonly body: string | null
  /** By default its own. */
  readonly size?: number
  readonly status?: "accepted" | "rejected"
  readonly isReplay?: boolean
}

/** Requests of a source, as ingress stores them. Returns their ids. */
const store = Effect.fnUntraced(function* (source: string, requests: ReadonlyArray<Stored>) {
  const sql = yield* SqlClient.SqlClient
  const ids: Array<string> = []
  for (const { at, body, isReplay = false, size = body?.length ?? 2, status = "accepted" } of requests) {
    const id = newId(prefixes.request, began + at)
    yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size,
        events_count, ignored_count, retry_kind, ingested_at, created_at, updated_at)
      values (${id}, ${teams.a.id}, ${source}, ${status}, false, 'POST', '/orders', '', '{"content-type":"application/json"}',
        ${body === null ? null : Buffer.from(body)}, ${size}, 0, 0, ${isReplay ? "single" : null},
        ${new Date(began + at)}, now(), now())`
    ids.push(id)
  }
  return ids
})

const rule = { type: "deduplicate", window: 60_000, include_fields: ["body.id"] }

layer(withDay, { excludeTestServices: true })("Test of a deduplicate rule", (it) => {
  it.effect(
    "A deduplicate rule is tried on the stored requests of a source, in their order and within its window",
    () =>
      Effect.gen(function* () {
        const source = yield* newSource
        const [first, second, , , , again] = yield* store(source, [
          { at: 0, body: '{"id":1,"sent":"a"}' },
          { at: 59_999, body: '{"id":1,"sent":"b"}' },
          { at: 60_000, body: '{"id":1}' },
          { at: 60_001, body: '{"other":1}' },
          { at: 60_002, body: null },
          { at: 60_003, body: '{"id":2}' },
          { at: 60_004, body: '{"id":2}', isReplay: true },
          { at: 60_005, body: '{"id":2}', status: "rejected" }
        ])
        const path = `/sources/${source}/deduplication-test`
        const duplicate = {
          request_id: second,
          ingested_at: new Date(began + 59_999).toISOString(),
          first_request_id: first,
          first_ingested_at: new Date(began).toISOString()
        }
        expect(yield* call("POST", path, { body: { rule } })).toMatchObject({
          status: 200,
          body: { source_id: source, tested: 6, unavailable: 1, without_key: 2, duplicates: [duplicate] }
        })
        // A longer window has the third one as well, and it repeats the first, too.
        const longer = yield* call("POST", path, { body: { rule: { ...rule, window: 60_001 } } })
        expect(longer.body.duplicates.map((one: typeof duplicate) => one.first_request_id)).toEqual([first, first])
        // Only what meets the conditions, and only the latest ones.
        const narrow = { ...rule, body: { sent: "b" } }
        expect((yield* call("POST", path, { body: { rule: narrow } })).body).toMatchObject({
          without_key: 5,
          duplicates: []
        })
        expect((yield* call("POST", path, { body: { rule, limit: 2 } })).body).toMatchObject({
          tested: 2,
          duplicates: []
        })
        yield* store(source, [{ at: 60_006, body: '{"id":2}' }])
        expect((yield* call("POST", path, { body: { rule, limit: 3 } })).body).toMatchObject({
          duplicates: [{ first_request_id: again }]
        })
      })
  )

  it.effect("A test of a deduplicate rule compares at most 32 MiB of bodies, of the latest requests", () =>
    Effect.gen(function* () {
      const source = yield* newSource
      // Their stored sizes decide before a body is read.
      yield* store(
        source,
        [0, 1, 2, 3].map((at) => ({ at, body: '{"id":1}', size: 9 * 1024 * 1024 }))
      )
      const { body } = yield* call("POST", `/sources/${source}/deduplication-test`, { body: { rule } })
      expect([body.tested, body.unavailable, body.duplicates.length]).toEqual([3, 1, 2])
    })
  )

  it.effect("A test of a deduplicate rule refuses other rules, other numbers, and sources of other teams", () =>
    Effect.gen(function* () {
      const source = yield* newSource
      const path = `/sources/${source}/deduplication-test`
      const wrong: ReadonlyArray<readonly [unknown, number, string, string]> = [
        [{}, 400, "VALIDATION_ERROR", "rule"],
        [{ rule: { type: "delay", delay: 1_000 } }, 400, "VALIDATION_ERROR", "rule.type"],
        [{ rule: { ...rule, window: 1 } }, 400, "RULE_INVALID", "rule.window"],
        [{ rule, limit: 101 }, 400, "VALIDATION_ERROR", "limit"],
        [{ rule, limit: 0 }, 400, "VALIDATION_ERROR", "limit"]
      ]
      for (const [body, status, code, field] of wrong) {
        const answer = yield* call("POST", path, { body })
        expect([body, answer.status, answer.body.code]).toEqual([body, status, code])
        expect(answer.body.data.fields).toMatchObject([{ path: field }])
      }
      const misspelt = yield* call("POST", path, { body: { rule: { tpye: "deduplicate", window: 60_000 } } })
      expect(misspelt.body.data.fields).toMatchObject([
        { path: "rule.type", message: "must be deduplicate" },
        { path: "rule.tpye", message: expect.stringContaining("did you mean type?") }
      ])
      const known = yield* call("POST", path, { key: teams.b.key, body: { rule } })
      const unknown = newId(prefixes.source, began)
      const other = yield* call("POST", `/sources/${unknown}/deduplication-test`, { body: { rule } })
      expect([known.status, other.status]).toEqual([404, 404])
    })
  )
})
