import { expect, layer } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { start } from "../../embedded-postgres/src/EmbeddedPostgres.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { retain } from "../src/retention/Retention.ts"
import {
  confirmDeletion,
  readDeletion as readDataDeletion,
  requestDeletion as requestDataDeletion
} from "../src/deletion/DataDeletions.ts"
import { advanceDataDeletion, DataDeletionPace } from "../src/deletion/DataRemoval.ts"
import { beginDataRemoval } from "../src/deletion/Stopping.ts"
import { parseSecretKeys, Secrets } from "../src/secrets/Secrets.ts"
import { requestDeletion } from "../src/teams/TeamDeletions.ts"
import { beginRemoval, DeletionPace, removePiece } from "../src/teams/TeamRemoval.ts"
import { makeOldDays } from "./OldDays.ts"
import { mine, old, other, requestOf } from "./twoTeams.ts"

/*
 * What was deleted is looked for in the files of the database, and not by SQL. The write-ahead log is another folder: it has the bytes
 * until the server recycles it.
 */

/** A server of the suite's own, with the role that may make it write all pages: the gateway's role may not. */
const world = Layer.unwrap(
  Effect.gen(function* () {
    const { superuserUrl } = yield* start({ home: join(yield* temporaryFolder, "postgres"), disposable: true })
    return Layer.effectDiscard(Effect.andThen(migrate, makeOldDays(old))).pipe(
      Layer.provideMerge(
        Layer.merge(
          Database.layer({ url: superuserUrl, connections: 2, hotConnections: 1, journalConnections: 1 }),
          Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("ab".repeat(32))) })
        )
      )
    )
  })
).pipe(Layer.orDie)

/** Whether a text is in any file of the database, once the server has written all pages. */
const isInFiles = Effect.fnUntraced(function* (text: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`checkpoint`
  const [at] = yield* sql<{ folder: string }>`
    select current_setting('data_directory') || '/base/' || oid as folder from pg_database where datname = current_database()`
  return readdirSync(at!.folder).some((file) => readFileSync(join(at!.folder, file)).includes(text))
})

/** Writes a text into each kind of payload that a team has of a day. */
const mark = Effect.fnUntraced(function* (team: string, age: number, text: string) {
  const sql = yield* SqlClient.SqlClient
  const marked = [
    yield* sql`update requests set headers = ${`{"x":"${text}-header"}`}, body = ${Buffer.from(`${text}-body`)}
      where team_id = ${team} and id = ${requestOf(team, age)} returning 1`,
    yield* sql`update attempts set body = ${Buffer.from(`${text}-answer`)}
      where team_id = ${team} and request_id = ${requestOf(team, age)} returning 1`,
    yield* sql`update workflow_steps set outputs = ${`${text}-journal`}
      where team_id = ${team} and created_at::date = (select created_at::date from requests where id = ${requestOf(team, age)}) returning 1`,
    yield* sql`update event_data set body = ${Buffer.from(`${text}-transformed`)}
      where team_id = ${team} and created_at::date = (select created_at::date from requests where id = ${requestOf(team, age)}) returning 1`
  ]
  expect(marked.map(({ length }) => length > 0)).toEqual([true, true, true, true])
})

const pace = { rows: 1_000, bytes: 1_000_000, planMs: 60_000, targets: 1_000 }

const places = ["header", "body", "answer", "journal", "transformed"]
const foundOf = (text: string) => Effect.forEach(places, (place) => isInFiles(`${text}-${place}`))
const all = places.map(() => true)
const none = places.map(() => false)

layer(world, { excludeTestServices: true })("Bytes of what was deleted", (it) => {
  it.effect("Payloads that retention has removed for every team are in no file of the tables", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* mark(mine, old.days, "expired-mine")
      yield* mark(mine, 0, "kept-today")
      expect(yield* foundOf("expired-mine")).toEqual(all)
      yield* retain({ payloadDays: 1, recordDays: 90 })
      expect(yield* foundOf("expired-mine")).toEqual(none)
      expect(yield* foundOf("kept-today")).toEqual(all)
      expect((yield* sql`select from requests where id = ${requestOf(mine, old.days)}`).length).toBe(1)
    })
  )

  it.effect("A person's data is in no file of the tables that the proof names, once these are vacuumed in full", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* mark(mine, 1, "deleted-person")
      yield* mark(other, 1, "kept-person")
      expect(yield* isInFiles("deleted-person")).toBe(true)
      const which = { id: "del_1", team_id: mine }
      yield* requestDataDeletion({ ...which, text: "deleted-person", filter: {}, by: null })
      while ((yield* advanceDataDeletion(which.id)) !== "at rest");
      yield* confirmDeletion(which, null)
      for (let next; next !== "at rest"; next = yield* advanceDataDeletion(which.id)) {
        if (next === "to be stopped") yield* beginDataRemoval(which.id)
      }
      const { deleted, stage } = yield* readDataDeletion(which)
      expect([stage, Object.keys(deleted).toSorted()]).toEqual([
        "done",
        ["attempts", "event_data", "events", "executions", "requests", "workflow_runs", "workflow_steps"]
      ])
      for (const table of Object.keys(deleted)) yield* sql`vacuum full ${sql(table)}`
      expect(yield* isInFiles("deleted-person")).toBe(false)
      expect(yield* isInFiles("kept-person")).toBe(true)
    }).pipe(Effect.provideService(DataDeletionPace, { ...pace, quietMs: 0 }))
  )

  it.effect(
    "A deleted team is in no file of the tables once these are vacuumed in full, and another team still is",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* mark(mine, 0, "deleted-mine")
        yield* mark(other, 0, "stays-other")
        expect(yield* foundOf("deleted-mine")).toEqual(all)
        yield* requestDeletion(mine, mine, null)
        yield* beginRemoval(mine)
        while ((yield* removePiece(mine)) !== null);
        yield* sql`vacuum full`
        expect(yield* foundOf("deleted-mine")).toEqual(none)
        expect(yield* foundOf("stays-other")).toEqual(all)
      }).pipe(Effect.provideService(DeletionPace, { pages: 128, quietMs: 0, channelsMs: 0 }))
  )
})
