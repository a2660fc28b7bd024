import { expect, layer } from "@effect/vitest"
import { scryptSync } from "node:crypto"
import { inspect } from "node:util"
import { brotliCompressSync, gzipSync } from "node:zlib"
import { Clock, Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { newId, prefixes, sibling } from "@tidegate/model/Ids"
import type { DataDeletionFilter } from "@tidegate/model/DataDeletion"
import {
  cancelDeletion,
  confirmDeletion,
  listDeletions,
  readDeletion,
  requestDeletion
} from "../src/deletion/DataDeletions.ts"
import { advanceDataDeletion, DataDeletionPace, openDataDeletions } from "../src/deletion/DataRemoval.ts"
import { noPlaces, placesOf, readPlaces } from "../src/deletion/Places.ts"
import { beginDataRemoval, cancelSelectedEvents, selectedRuns } from "../src/deletion/Stopping.ts"
import { type Table, tables } from "../src/Tables.ts"
import { mine, old, other, world } from "./everyTable.ts"
import { idOf, resourcesOf } from "./OldDays.ts"
import { codeOf } from "./twoTeams.ts"

/* Two teams with rows in every table. Data of one of them is deleted, by a text or by a filter, and each piece is broken off once. */

const pace = { rows: 30, bytes: 4_000, quietMs: 0, planMs: 60_000, targets: 1_000 }
const quickly = Effect.provideService(DataDeletionPace, pace)

const brokenOff = new SqlError.SqlError({
  reason: new SqlError.UnknownError({ message: "the process has died", cause: undefined })
})

/** Does a piece twice: the first time the process dies before the commit. */
const dyingFirst = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.flip(sql.withTransaction(Effect.andThen(advanceDataDeletion(id), Effect.fail(brokenOff))))
  return yield* advanceDataDeletion(id)
})

/** Goes on until the deletion rests, and stops what waits when that is its turn. */
const goOn = Effect.fnUntraced(function* (
  id: string,
  next: (id: string) => ReturnType<typeof advanceDataDeletion> = advanceDataDeletion
) {
  for (;;) {
    const then = yield* next(id)
    if (then === "at rest") return yield* readDeletion({ id, team_id: mine })
    if (then === "to be stopped") {
      yield* cancelSelectedEvents({ id, team_id: mine }, "")
      yield* beginDataRemoval(id)
    }
  }
})

const ask = Effect.fnUntraced(function* (text: string | null, filter: DataDeletionFilter = {}) {
  const id = newId(prefixes.dataDeletion, yield* Clock.currentTimeMillis)
  yield* requestDeletion({ id, team_id: mine, text, filter, by: "usr_ada" })
  return id
})

/** Plans, confirms and carries out. */
const deleteAll = Effect.fnUntraced(function* (text: string | null, filter: DataDeletionFilter = {}) {
  const id = yield* ask(text, filter)
  expect((yield* goOn(id)).stage).toBe("planned")
  yield* confirmDeletion({ id, team_id: mine }, "usr_eve")
  return yield* goOn(id)
})

const ofTeams = Object.entries<Table>(tables).flatMap(([name, { team }]) => (team === null ? [] : [{ name, team }]))

/** The tables in which a text is, as a text or as bytes, in rows of a team. */
const tablesWith = Effect.fnUntraced(function* (team: string, text: string) {
  const sql = yield* SqlClient.SqlClient
  const hex = Buffer.from(text).toString("hex")
  const found: Array<string> = []
  for (const { name, team: column } of ofTeams) {
    const [row] = yield* sql<{ there: boolean }>`
      select exists (select from ${sql(name)} r where ${sql(column)} = ${team}
        and (strpos(r::text, ${text}) > 0 or strpos(r::text, ${hex}) > 0)) as there`
    if (row!.there) found.push(name)
  }
  return found
})

const rowsOf = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  const counts: Record<string, number> = {}
  for (const { name, team: column } of ofTeams) {
    const [row] = yield* sql<{ count: number }>`
      select count(*)::int4 as count from ${sql(name)} where ${sql(column)} = ${team}`
    counts[name] = row!.count
  }
  return counts
})

const request = (team: string, n: number) => sibling(prefixes.request, `req_${idOf(old, team, 0, n)}`)

/** Where a text is written for a test: a column of one row of the table. Text, JSON or bytes. */
const planted: Readonly<Record<string, readonly [column: string, type: "text" | "json" | "jsonb" | "bytea"]>> = {
  requests: ["body", "bytea"],
  events: ["failure_message", "text"],
  event_data: ["query", "text"],
  attempts: ["response_headers", "text"],
  ignored_events: ["meta", "jsonb"],
  executions: ["logs", "text"],
  proxy_exchanges: ["response_body", "bytea"],
  pending_routes: ["ordering_key", "text"],
  dedupe_keys: ["key", "text"],
  channel_items: ["body", "text"],
  workflow_runs: ["label", "text"],
  workflow_steps: ["outputs", "text"],
  workflow_inputs: ["body", "bytea"],
  workflow_queue: ["carried", "text"],
  workflow_turns: ["key", "text"],
  workflow_windows: ["key", "text"],
  workflow_keys: ["key", "text"],
  workflow_waits: ["filter", "json"],
  request_fixtures: ["body", "bytea"],
  request_shares: ["snapshot", "text"],
  step_results: ["result", "text"],
  workflow_values: ["value", "json"],
  team_values: ["value", "json"],
  bulk_operations: ["filter", "jsonb"]
}

/** Places whose rows have ids only: what they belong to has the text. */
const withoutText = ["workflow_batched", "workflow_children", "workflow_arrivals", "idempotency_keys"]

const plant = Effect.fnUntraced(function* (team: string, text: string) {
  const sql = yield* SqlClient.SqlClient
  for (const [table, [column, type]] of Object.entries(planted)) {
    const value = JSON.stringify({ who: text })
    const given =
      type === "bytea"
        ? sql`${Buffer.from(value)}`
        : type === "text"
          ? sql`${value}`
          : sql`${value}::text::${sql.literal(type)}`
    const done = yield* sql`
      update ${sql(table)} t set ${sql(column)} = ${given}
      from (select ctid as at, tableoid as of from ${sql(table)} where team_id = ${team} limit 1) one
      where t.ctid = one.at and t.tableoid = one.of returning 1`
    expect([table, done.length]).toEqual([table, 1])
  }
})

layer(world, { excludeTestServices: true })("Deletion of data", (it) => {
  it.effect(
    "Every table is a place of data, or listed with the reason why it is none, and its texts are looked at",
    () =>
      Effect.gen(function* () {
        const named = [...Object.keys(placesOf), ...Object.keys(noPlaces)]
        expect(named.toSorted()).toEqual(ofTeams.map(({ name }) => name).toSorted())
        expect([...Object.keys(planted), ...withoutText].toSorted()).toEqual(Object.keys(placesOf).toSorted())
        const places = yield* readPlaces
        const sql = yield* SqlClient.SqlClient
        const columns = yield* sql<{ of: string; type: string }>`
        select table_name || '.' || column_name as of, data_type as type from information_schema.columns
        where table_schema = 'public' and table_name = any(string_to_array(${Object.keys(placesOf).join(",")}, ','))
          and data_type not in ('integer', 'bigint', 'smallint', 'boolean', 'timestamp with time zone', 'uuid')
          and (column_name = 'external_id' or (column_name <> 'id' and column_name not like '%\_id'))`
        const looked = places.flatMap(({ bytes, table, texts }) =>
          [...texts, ...bytes].map((name) => `${table}.${name}`)
        )
        // Encrypted credentials, which nobody can look through, and the hash of a link's token.
        const others = [
          "request_fixtures.presented",
          "requests.presented",
          "idempotency_keys.answer",
          "request_shares.token_hash"
        ]
        expect([...looked, ...others].toSorted()).toEqual(columns.map(({ of }) => of).toSorted())
        for (const { bytes, table, texts } of places) {
          const column = planted[table]?.[0]
          expect(column === undefined || [...bytes, ...texts].includes(column), table).toBe(true)
        }
      })
  )

  it.effect(
    "A person's text is deleted with the requests and runs that it is in, wherever it is, although the process dies at each step",
    () =>
      Effect.gen(function* () {
        const text = "ada+1@example.com"
        const sql = yield* SqlClient.SqlClient
        for (const team of [mine, other]) {
          yield* sql`update dedupe_keys set request_id = ${request(team, 10)} where team_id = ${team}`
          yield* plant(team, text)
        }
        const others = yield* rowsOf(other)
        const before = yield* rowsOf(mine)
        const there = yield* tablesWith(mine, text)
        expect(there.toSorted()).toEqual(Object.keys(planted).toSorted())

        const id = yield* ask(text)
        const which = { id, team_id: mine }
        const plan = yield* goOn(id, dyingFirst)
        expect(plan).toMatchObject({ stage: "planned", requested_by: "usr_ada", confirmed_at: null, deleted: {} })
        expect(Object.keys(plan.planned)).toEqual(
          expect.arrayContaining(["requests", "events", "attempts", "workflow_runs"])
        )
        expect(yield* rowsOf(mine)).toMatchObject({ requests: before["requests"], events: before["events"] })

        yield* confirmDeletion(which, "usr_eve")
        const proof = yield* goOn(id, dyingFirst)
        expect(proof).toMatchObject({
          stage: "done",
          confirmed_by: "usr_eve",
          error: null,
          unreadable_count: 0,
          cancelable: false
        })
        expect(proof.deleted).toEqual(plan.planned)
        expect(yield* tablesWith(mine, text)).toEqual([])
        const after = yield* rowsOf(mine)
        // Waiting deliveries and targets are not counted: they go with what they are about. Items and answers are cleared, and stay.
        for (const table of Object.keys(placesOf)) {
          const isCleared = table === "channel_items" || table === "idempotency_keys"
          expect([table, before[table]! - after[table]!]).toEqual([table, isCleared ? 0 : (proof.deleted[table] ?? 0)])
        }
        for (const table of Object.keys(noPlaces)) {
          if (!["deliveries", "data_deletions", "bulk_targets"].includes(table))
            expect([table, after[table]]).toEqual([table, before[table]])
        }
        expect(after["requests"]).toBeGreaterThan(0)
        expect(yield* rowsOf(other)).toEqual(others)
        expect((yield* tablesWith(other, text)).toSorted()).toEqual(there.toSorted())

        // The proof says what was looked for only to somebody who knows it.
        const [kind, salt, hash] = proof.text_hash!.split(":")
        expect(kind).toBe("scrypt")
        expect(scryptSync(text, Buffer.from(salt!, "hex"), 32).toString("hex")).toBe(hash)
        expect(JSON.stringify(proof)).not.toContain("example.com")
        expect(yield* sql`select text from data_deletions where id = ${id}`).toEqual([{ text: null }])
        const changed = yield* Effect.flip(sql`update data_deletions set deleted = '{}' where id = ${id}`)
        expect(inspect(changed, { depth: 9 })).toContain("is proof")
        expect((yield* listDeletions(mine))[0]).toEqual(proof)
        expect(yield* confirmDeletion(which, null)).toEqual(proof)
        expect(yield* codeOf(cancelDeletion(which))).toBe("BULK_OPERATION_NOT_CANCELABLE")
        expect(yield* codeOf(readDeletion({ id, team_id: other }))).toBe("NOT_FOUND")
      }).pipe(quickly)
  )

  it.effect(
    "A text is found in JSON, in URLs, in forms, and in compressed bodies, and what cannot be read is counted",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const text = "Zoë O/Hara & co"
        const coded = (coding: string) => `{"content-encoding":"${coding}"}`
        const bodies: ReadonlyArray<readonly [headers: string, query: string, body: Buffer]> = [
          ["{}", "", Buffer.from(JSON.stringify({ text }))],
          ["{}", "", Buffer.from('{"text":"Zo\\u00eb O/Hara & co"}')],
          ["{}", "name=Zo%C3%AB%20O%2FHara%20%26%20co", Buffer.from("")],
          ["{}", "name=Zo%c3%ab+O%2fHara+%26+co", Buffer.from("")],
          [coded("gzip"), "", gzipSync(`<who>${text}</who>`)],
          [coded("br"), "", brotliCompressSync("x".repeat(700_000) + text)],
          [coded("gzip"), "", Buffer.from("broken")]
        ]
        const ids = [0, 1, 4, 5, 7, 8, 9].map((n) => request(mine, n + 20))
        for (const [n, [headers, query, body]] of bodies.entries()) {
          const done =
            yield* sql`update requests set headers = ${headers}, query = ${query}, body = ${body} where id = ${ids[n]!} returning 1`
          expect(done.length).toBe(1)
        }
        const proof = yield* deleteAll(text)
        expect(proof).toMatchObject({ stage: "done" })
        expect(proof.deleted["requests"]).toBe(6)
        expect(proof.unreadable_count).toBe(1)
        expect(yield* sql`select id from requests where id = any(string_to_array(${ids.join(",")}, ','))`).toEqual([
          { id: ids[6] }
        ])
      }).pipe(quickly)
  )

  it.effect(
    "A filter deletes its requests with replays of them, and with runs that came of those, and nothing else",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [first, replay, again] = [request(mine, 30), request(mine, 31), request(mine, 32)]
        yield* sql`update requests set retry_parent_request_id = ${first} where id = ${replay}`
        yield* sql`update requests set retry_parent_request_id = ${replay} where id = ${again}`
        const runs = [33, 34, 35, 36].map((n) => `wfr_${idOf(old, mine, 0, n)}`)
        const { source } = resourcesOf(mine)
        for (const [n, run] of runs.entries()) {
          yield* sql`delete from workflow_runs where id = ${run}`
          yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, rerun_of, on_failure,
            created_at, updated_at)
          values (${run}, ${mine}, 'wfl', ${n === 0 ? again : run}, ${source}, 1, 'succeeded', 0, ${n === 1 ? runs[0]! : null},
            ${n === 1 ? JSON.stringify({ run_id: runs[2] }) : null}::text::jsonb, now(), now())`
        }
        yield* sql`insert into workflow_children (parent_run_id, step_id, began_at, child_run_id, root_run_id, depth, team_id, workflow_id,
          shard, child_workflow_id, child_shard, expires_at)
        values (${runs[2]!}, 'call', now(), ${runs[3]!}, ${runs[2]!}, 1, ${mine}, 'wfl', 1, 'wfl', 1, now() + interval '1 day')`
        const at = new Date(old.now - (old.now % 86_400_000) + 3_600_000 + 30 * 60_000)
        const before = yield* rowsOf(mine)
        const proof = yield* deleteAll(null, {
          from: at.toISOString(),
          to: new Date(at.getTime() + 59_000).toISOString(),
          source_id: [source]
        })
        expect(proof).toMatchObject({ stage: "done", text_hash: null })
        expect(proof.deleted).toMatchObject({ requests: 3, workflow_runs: 5, workflow_children: 1 })
        expect((yield* rowsOf(mine))["requests"]).toBe(before["requests"]! - 3)
        for (const id of [first, replay, again, ...runs]) {
          const left = (yield* tablesWith(mine, id)).filter((name) => Object.hasOwn(placesOf, name))
          expect([id, left]).toEqual([id, []])
        }
      }).pipe(quickly)
  )

  it.effect(
    "A team has one deletion at a time, which can be cancelled, ends when it finds too much, and expires as a plan",
    () =>
      Effect.gen(function* () {
        const id = yield* ask(null, {})
        const which = { id, team_id: mine }
        expect(yield* requestDeletion({ ...which, text: null, filter: {}, by: null })).toMatchObject({
          id,
          requested_by: "usr_ada"
        })
        expect(yield* codeOf(requestDeletion({ id: "del_2", team_id: mine, text: null, filter: {}, by: null }))).toBe(
          "TEAM_LIMIT_REACHED"
        )
        expect(yield* codeOf(confirmDeletion(which, null))).toBe("BULK_OPERATION_NOT_RUNNABLE")
        expect(yield* codeOf(cancelDeletion({ id, team_id: other }))).toBe("NOT_FOUND")
        expect((yield* openDataDeletions).map((one) => one.id)).toEqual([id])
        expect(yield* cancelDeletion(which)).toMatchObject({ stage: "cancelled", deleted: {} })
        expect(yield* cancelDeletion(which)).toMatchObject({ stage: "cancelled" })
        expect(yield* advanceDataDeletion(id)).toBe("at rest")

        const many = yield* Effect.provideService(
          Effect.flatMap(ask(null, {}), (id) => goOn(id)),
          DataDeletionPace,
          { ...pace, targets: 3 }
        )
        expect(many).toMatchObject({ stage: "failed", error: { code: "TEAM_LIMIT_REACHED" }, deleted: {} })

        const late = yield* Effect.provideService(
          Effect.gen(function* () {
            const id = yield* ask("nobody@example.com")
            expect(yield* goOn(id)).toMatchObject({ stage: "planned", planned_total: 0 })
            return yield* goOn(id)
          }),
          DataDeletionPace,
          { ...pace, planMs: -1 }
        )
        expect(late).toMatchObject({ stage: "cancelled", error: { code: "REQUEST_TIMEOUT" } })
        expect(yield* openDataDeletions).toEqual([])
      }).pipe(quickly)
  )

  it.effect("What waits of selected requests and runs is found, and that of other teams is not", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = yield* ask(null, {})
      yield* goOn(id)
      for (const team of [mine, other]) {
        yield* sql`insert into data_deletion_targets (deletion_id, target_id, team_id)
          select ${id}, run_id, ${mine} from workflow_queue where team_id = ${team}
          union select ${id}, e.request_id, ${mine} from events e join deliveries d on d.event_id = e.id where d.team_id = ${team}
          on conflict do nothing`
      }
      const { stopped } = yield* selectedRuns({ id, team_id: other }, "")
      expect(stopped.length).toBe(1)
      expect((yield* selectedRuns({ id, team_id: mine }, "")).stopped.map((run) => run.id)).not.toContain(
        stopped[0]!.id
      )
      expect((yield* cancelSelectedEvents({ id, team_id: mine }, "")).stopped).toBe(1)
      const waiting = yield* sql`select team_id from deliveries where team_id in (${mine}, ${other})`
      expect(waiting).toEqual([{ team_id: other }])
      expect((yield* cancelSelectedEvents({ id, team_id: mine }, "")).stopped).toBe(0)
      yield* cancelDeletion({ id, team_id: mine })
    }).pipe(quickly)
  )
})
