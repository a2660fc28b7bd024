import { Clock, Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { AnyResource } from "@tidegate/resources/Resource"
import type { Owner } from "../secrets/SealedColumn.ts"
import type { Command, StoredRow, Values } from "./Store.ts"

/** The time of a change. */
export const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

/**
 * Commands that a row remembers. A repetition comes within seconds, when its connection breaks; no more commands than these come
 * in between.
 */
const maxRemembered = 16

/** The commands that a row remembers after this one. */
export const lately = ({ id }: Command, before: ReadonlyArray<string>): ReadonlyArray<string> =>
  id === undefined ? before : [id, ...before].slice(0, maxRemembered)

/** Reads the rows of a resource, by id and by name. */
export const storedRows = <Row extends StoredRow>(sql: SqlClient.SqlClient, resource: AnyResource) => {
  const table = sql(resource.plural)

  /** Includes the row's revision: two reads with the same revision have the same row. */
  const read = Effect.fnUntraced(function* (team_id: string, id: string, locking: "lock" | "look") {
    const [row] = yield* sql<Row & { readonly revision: string }>`
      select *, xmin::text as revision from ${table} where id = ${id} and team_id = ${team_id}
      ${sql.literal(locking === "lock" ? "for update" : "")}`
    return row ?? (yield* notFound(resource.name, id))
  })

  const present = <A extends Row>(row: A): Effect.Effect<A, GatewayError> =>
    row.deleted_at === null ? Effect.succeed(row) : Effect.fail(notFound(resource.name, row.id))

  const findByName = Effect.fnUntraced(function* (team_id: string, name: string, of: Values = {}) {
    const clauses = Object.entries({ team_id, name, ...of }).map(([column, value]) => sql`${sql(column)} = ${value}`)
    const [row] = yield* sql<{ id: string }>`select id from ${table} where ${sql.and(clauses)} and deleted_at is null`
    return row?.id ?? null
  })

  const claimName = Effect.fnUntraced(function* ({ id, team_id }: Owner, name: unknown) {
    const holder = yield* findByName(team_id, String(name))
    if (holder === null || holder === id) return
    const about = { id: holder, resource_type: resource.name }
    yield* fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", about)
  })

  return { read, present, findByName, claimName }
}
