import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Fixture, FixtureTarget } from "@tidegate/model/Fixture"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { type Listed, listed } from "@tidegate/model/Lists"
import * as Columns from "../journal/Columns.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "../reads/Paging.ts"
import { anyBody, payloadColumns, type PayloadRow, payloadsOf } from "../reads/RequestRow.ts"
import { exactly, type Original } from "../bulk/Originals.ts"
import type { Replay } from "../bulk/Replays.ts"
import { payloadGone } from "../Tables.ts"
import { holdTeam } from "../teams/Teams.ts"

/*
 * Requests that are kept to be replayed. A fixture is a copy of a request, and retention does not remove it. It has no actor,
 * because nothing caches it: each change is one statement.
 */

/** The limit of one team. Each fixture may have 10 MiB and stays until it is deleted. */
export const maxFixtures = 1_000

interface FixtureRow extends Omit<Fixture, "last_replayed_at" | "created_at" | "updated_at" | "snapshot"> {
  readonly last_replayed_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

const columns = `f.id, f.team_id, f.name, f.description, f.source_id, s.name as source_name, f.original_request_id,
  f.replay_count, f.last_replayed_at, f.created_at, f.updated_at`

const toFixture = ({ created_at, last_replayed_at, updated_at, ...row }: FixtureRow): Fixture => ({
  ...row,
  last_replayed_at: last_replayed_at?.toISOString() ?? null,
  created_at: created_at.toISOString(),
  updated_at: updated_at.toISOString()
})

/** A page of the fixtures of a team, newest first. */
export const listFixtures = Effect.fnUntraced(function* (
  team_id: string,
  { search, sources }: { readonly sources: ReadonlyArray<string>; readonly search: string | undefined },
  page: PageRequest
): Effect.fn.Return<Listed<Fixture>, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const position = yield* Effect.fromResult(positionOf(page))
  const conditions = [sql`f.team_id = ${team_id}`]
  if (position !== null) conditions.push(sql`f.id < ${position.id}`)
  if (sources.length > 0) conditions.push(sql`f.source_id = any(${Columns.text(sources)})`)
  if (search !== undefined) {
    conditions.push(
      sql`(strpos(lower(f.name), lower(${search})) > 0 or f.id = ${search} or f.original_request_id = ${search})`
    )
  }
  const rows = yield* sql<FixtureRow>`
    select ${sql.literal(columns)} from request_fixtures f join sources s on s.id = f.source_id
    where ${sql.and(conditions)} order by f.id desc limit ${page.limit + 1}`
  const { last, page: shown } = cutToLimit(rows, page.limit)
  return listed(shown.map(toFixture), cursorAfter(page.key, last))
})

/** One fixture with its copied request. */
export const fixtureOf = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<Fixture, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<FixtureRow>`
    select ${sql.literal(columns)} from request_fixtures f join sources s on s.id = f.source_id
    where f.id = ${id} and f.team_id = ${team_id}`
  if (row === undefined) return yield* notFound("fixture", id)
  const stored = yield* sql<PayloadRow>`
    select ${sql.literal(payloadColumns(anyBody))} from (
      select id, method, path, query, headers, body, length(body) as body_size, null::text as rejection_cause
      from request_fixtures where id = ${id} and team_id = ${team_id}) r`
  const snapshot = (yield* payloadsOf(stored)).get(id)
  return Object.assign(toFixture(row), snapshot === undefined ? {} : { snapshot })
})

/** Copies a request of the team whose payload is still stored. */
export const createFixture = Effect.fnUntraced(function* (given: {
  /** With an id of the caller's choice a repeated call creates it only once. */
  readonly id?: string
  readonly team_id: string
  readonly request_id: string
  readonly name: string
  readonly description: string | null
}): Effect.fn.Return<Fixture, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { description, name, request_id, team_id } = given
  const nowMs = yield* Clock.currentTimeMillis
  const { id = newId(prefixes.fixture, nowMs) } = given
  const now = new Date(nowMs)
  const made = yield* sql.withTransaction(
    Effect.andThen(
      holdTeam(team_id),
      sql`
        insert into request_fixtures (id, team_id, name, description, source_id, original_request_id, method, path, query, headers,
          presented, body, verified, external_id, original_ip, created_at, updated_at)
        select ${id}, team_id, ${name}, ${description}, source_id, id, method, path, query, headers, presented, body, verified,
          external_id, original_ip, ${now}, ${now}
        from requests where id = ${request_id} and team_id = ${team_id} and body is not null and headers <> ${payloadGone}
          and (select count(*) from request_fixtures where team_id = ${team_id} and id <> ${id}) < ${maxFixtures}
        on conflict (id) do update set id = excluded.id
        returning 1`
    )
  )
  if (made.length === 0) {
    const [found] = yield* sql<{ isStored: boolean }>`
      select body is not null and headers <> ${payloadGone} as "isStored" from requests
      where id = ${request_id} and team_id = ${team_id}`
    if (found === undefined) return yield* notFound("request", request_id)
    return yield* found.isStored
      ? fail("TEAM_LIMIT_REACHED", `a team can have ${maxFixtures} fixtures; delete one first`, {
          limit: maxFixtures
        })
      : fail("PAYLOAD_UNAVAILABLE", "the payload of the request is not stored")
  }
  return yield* fixtureOf(team_id, id)
})

/** Absent fields stay as they are. The copied request never changes. */
export const updateFixture = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  { description, name }: { readonly name?: string; readonly description?: string | null }
): Effect.fn.Return<Fixture, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`
    update request_fixtures set name = coalesce(${name ?? null}, name),
      description = case when ${description === undefined} then description else ${description ?? null} end, updated_at = ${now}
    where id = ${id} and team_id = ${team_id}`
  return yield* fixtureOf(team_id, id)
})

export const deleteFixture = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<void, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const gone = yield* sql`delete from request_fixtures where id = ${id} and team_id = ${team_id} returning 1`
  if (gone.length === 0) yield* notFound("fixture", id)
})

/** The connections that a fixture can be replayed through: its source's current ones. */
export const fixtureTargets = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<ReadonlyArray<FixtureTarget>, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql`select from request_fixtures where id = ${id} and team_id = ${team_id}`
  if (found.length === 0) return yield* notFound("fixture", id)
  return yield* sql<FixtureTarget>`
    select c.id as connection_id, c.name as connection_name, s.id as source_id, s.name as source_name,
      d.id as destination_id, d.name as destination_name, d.type as destination_type
    from request_fixtures f
      join sources s on s.id = f.source_id and s.disabled_at is null and s.deleted_at is null
      join connections c on c.source_id = s.id and c.disabled_at is null and c.deleted_at is null
      join destinations d on d.id = c.destination_id and d.disabled_at is null and d.deleted_at is null
    where f.id = ${id} and f.team_id = ${team_id} order by c.id`
})

/** The replay of a fixture through one of its targets, as a request with this id. */
export const fixtureReplay = Effect.fnUntraced(function* (options: {
  readonly team_id: string
  readonly id: string
  readonly connection_id: string
  readonly request_id: string
}): Effect.fn.Return<
  { readonly replay: Replay; readonly target: FixtureTarget },
  GatewayError | SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const { connection_id, id, request_id, team_id } = options
  const target = (yield* fixtureTargets(team_id, id)).find((one) => one.connection_id === connection_id)
  if (target === undefined) {
    return yield* fail("FIXTURE_TARGET_INVALID", `connection ${connection_id} is none of the fixture's targets`)
  }
  const [of] = yield* sql<Original>`
    select original_request_id as id, team_id, source_id, null as rejection_cause, verified, presented, original_ip, external_id,
      method, path, query, headers, body
    from request_fixtures where id = ${id} and team_id = ${team_id}`
  if (of === undefined) return yield* notFound("fixture", id)
  return {
    replay: {
      ...exactly(of, request_id, { kind: "single", operation_id: null }),
      only: [connection_id],
      fixture_id: id
    },
    target
  }
})
