import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Sources } from "../../src/control/Sources.ts"
import { writeCursor } from "../../src/reads/Cursor.ts"
import type { ResourceQuery } from "../../src/reads/ResourceLists.ts"
import * as ControlPlane from "../controlPlane.ts"
import { listing } from "../listing.ts"
import { codeOf } from "../twoTeams.ts"

const { createSource, team } = ControlPlane

const pageOf = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, asked: Partial<ResourceQuery>) {
  const { list } = yield* Sources
  return yield* list(team, listing(ids, { limit: 1, ...asked }))
})

/** All of a list, a row at a time. */
const all = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, asked: Partial<ResourceQuery>) {
  const found: Array<string> = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: { readonly models: ReadonlyArray<{ readonly id: string }>; readonly next_cursor: string | null } =
      yield* pageOf(ids, { ...asked, cursor })
    found.push(...page.models.map(({ id }) => id))
    cursor = page.next_cursor
  }
  return found
})

const make = (names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => Effect.map(createSource({ name: ControlPlane.unique(name) }), ({ id }) => id))

layer(ControlPlane.layer, { excludeTestServices: true })("List of resources", (it) => {
  it.effect("Pages contain each row once, even for rows of the same moment or a microsecond apart", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* make(["b", "A", "é", "a", "\u{1f30a}", "a'%_\\"])
      yield* sql`update sources set created_at = '2026-01-01T00:00:00.000123Z', updated_at = created_at where id = any(${ids})`
      yield* sql`update sources set created_at = '2026-01-01T00:00:00.000124Z' where id = ${ids[2]!}`
      for (const orderBy of ["name", "created_at", "updated_at"] as const) {
        for (const dir of ["asc", "desc"] as const) {
          const whole = yield* pageOf(ids, { orderBy, dir, limit: 10 })
          expect(whole).toMatchObject({ count: ids.length, has_more: false, next_cursor: null })
          expect([orderBy, dir, yield* all(ids, { orderBy, dir })]).toEqual([
            orderBy,
            dir,
            whole.models.map(({ id }) => id)
          ])
        }
      }
    })
  )

  it.effect("The next page continues where the last one ended, even if its last row was renamed or deleted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* make(["one", "three", "two"])
      const first = yield* pageOf(ids, {})
      expect(first.models[0]!.id).toBe(ids[0])
      yield* sql`update sources set name = 'zzz' where id = ${ids[0]!}`
      const second = yield* pageOf(ids, { cursor: first.next_cursor! })
      expect(second.models[0]!.id).toBe(ids[1])
      yield* sql`update sources set deleted_at = now() where id = ${ids[1]!}`
      expect((yield* pageOf(ids, { cursor: second.next_cursor! })).models[0]!.id).toBe(ids[2])
    })
  )

  it.effect("A cursor that is no position of its order is rejected", () =>
    Effect.gen(function* () {
      const [id = ""] = yield* make(["one"])
      const at = { id, seen: 0, window: { from: 0, to: 0 }, back: false }
      for (const value of ["", "now", "-1", "1e9", "9".repeat(17), "1; drop table sources"]) {
        const cursor = writeCursor("k", { ...at, value })
        expect([value, yield* codeOf(pageOf([], { orderBy: "created_at", cursor }))]).toEqual([value, "INVALID_CURSOR"])
      }
      const text = Buffer.from(writeCursor("k", { ...at, value: "x" }), "base64url").toString()
      const withNul = Buffer.from(text.replace('"v":"x"', '"v":"\\u0000"')).toString("base64url")
      for (const cursor of [writeCursor("k", at), withNul]) {
        expect(yield* codeOf(pageOf([], { cursor }))).toBe("INVALID_CURSOR")
      }
    })
  )
})
