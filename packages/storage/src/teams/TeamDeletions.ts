import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import type { TeamDeletion } from "@tidegate/model/TeamDeletion"
import { tablesThat } from "../Tables.ts"
import { query, transaction } from "../Transaction.ts"
import { binsTeam, demoTeam } from "./Teams.ts"

/*
 * Deletions of teams: they are requested here, and `TeamRemoval.ts` carries them out. The row of a deletion outlives the team, and
 * is the proof of what was deleted.
 */

/** Deletions that are kept: the oldest of those that are done are forgotten. A list shows as many. */
export const maxDeletions = 1_000

interface Row {
  readonly id: string
  readonly requested_by: string | null
  readonly requested_at: Date
  readonly stage: TeamDeletion["stage"]
  readonly at_table: string | null
  readonly deleted: Readonly<Record<string, number>>
  readonly finished_at: Date | null
}

const shown = (row: Row): TeamDeletion => ({
  team_id: row.id,
  stage: row.stage,
  requested_by: row.requested_by,
  requested_at: row.requested_at.toISOString(),
  finished_at: row.finished_at?.toISOString() ?? null,
  // A partition's name ends with its day, which says when the team had data.
  current_table: row.at_table?.replace(/_\d{8}$/, "") ?? null,
  deleted: row.deleted,
  deleted_total: Object.values(row.deleted).reduce((sum, count) => sum + count, 0)
})

const columns = "id, requested_by, requested_at, stage, at_table, deleted, finished_at"

/** The deletion of a team. `requestedBy`: only if this user has requested it. */
export const readDeletion = Effect.fnUntraced(function* (
  team: string,
  requestedBy: string | null = null
): Effect.fn.Return<TeamDeletion, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select ${sql.literal(columns)} from team_deletions
    where id = ${team} and (${requestedBy}::text is null or requested_by = ${requestedBy})`
  return row === undefined ? yield* notFound("team_deletion", team) : shown(row)
})

/** All deletions, the latest first. */
export const listDeletions: Effect.Effect<
  ReadonlyArray<TeamDeletion>,
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Row>`
    select ${sql.literal(columns)} from team_deletions order by requested_at desc, id desc limit ${maxDeletions}`
  return rows.map(shown)
})

const gone = "deleted_at = $2"

/** The columns by which other processes see that a resource is deleted, if `deleted_at` alone is not enough, or must not be set. */
const toldBy: Readonly<Record<string, string>> = {
  sources: `${gone}, version = version + 1`,
  destinations: `${gone}, cancel_before = $2`,
  connections: `${gone}, cancel_before = $2`,
  // Its runs are deleted here. Otherwise the actor of the deleted workflow would remove them, and they would not be counted.
  workflows: "status = 'disabled'"
}

/**
 * Rows by which somebody can act on the team or read it, or by which work begins on its own. They are deleted at once, so no check
 * anywhere can be forgotten.
 */
const atOnce = [
  "project_secrets",
  "project_api_keys",
  "request_shares",
  "public_bins",
  "provider_consents",
  "workflow_schedules",
  "source_schedules",
  "source_subscriptions"
] as const

/**
 * Begins to delete a team with all its data. From the commit on, its sources refuse requests, no credential is valid for it, and every process that
 * loads one of its resources finds it deleted. A repeated call changes nothing.
 *
 * `name`: must be the team's name, so that nobody deletes the wrong team. `by`: the user; null: the operator.
 */
export const requestDeletion = Effect.fnUntraced(function* (
  team: string,
  name: string,
  by: string | null
): Effect.fn.Return<TeamDeletion, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(yield* Clock.currentTimeMillis)
  if (team === demoTeam || team === binsTeam) {
    yield* fail("RESOURCE_IN_USE", "the gateway itself makes this team at each start: it cannot be deleted")
  }
  yield* transaction(sql)(
    Effect.gen(function* () {
      const [row] = yield* sql<{ name: string; deleting_since: Date | null }>`
        select name, deleting_since from teams where id = ${team} for update`
      if (row === undefined) {
        yield* notFound("team", team)
        return
      }
      if (row.name !== name) yield* invalid([{ path: "team_name", message: "is not the name of this team" }])
      if (row.deleting_since !== null) return
      yield* sql`update teams set deleting_since = ${at} where id = ${team}`
      const deleted: Record<string, number> = {}
      for (const { name } of tablesThat("owned").filter(({ softDeleted }) => softDeleted)) {
        yield* sql.unsafe(
          `update ${name} set updated_at = $2, ${toldBy[name] ?? gone} where team_id = $1 and deleted_at is null`,
          [team, at]
        )
      }
      // Their actors end the subscriptions at the providers.
      yield* sql`update channels set due_at = ${at}, version = version + 1, updated_at = ${at} where team_id = ${team}`
      yield* sql`update bulk_operations set status = 'CANCELLED', finished_at = ${at} where team_id = ${team} and finished_at is null`
      for (const table of atOnce) {
        const rows = yield* sql`delete from ${sql(table)} where team_id = ${team} returning 1`
        if (rows.length > 0) deleted[table] = rows.length
      }
      // A session that was started for this team goes on with another one of its user's, and ends with the deletion if there is none.
      yield* sql`
        update sessions s set team_id = (
            select m.team_id from memberships m where m.user_id = s.user_id and m.team_id <> ${team}
            order by m.created_at, m.team_id limit 1)
        where s.team_id = ${team}
          and exists (select from memberships m where m.user_id = s.user_id and m.team_id <> ${team})`
      const members = yield* sql<{ user_id: string }>`delete from memberships where team_id = ${team} returning user_id`
      if (members.length > 0) deleted["memberships"] = members.length
      yield* sql`delete from users u where u.id = any(${members.map(({ user_id }) => user_id)}) and u.subject is null
        and not exists (select from memberships where user_id = u.id)`
      yield* sql`
        insert into team_deletions (id, requested_by, requested_at, deleted)
        values (${team}, ${by}, ${at}, ${JSON.stringify(deleted)}::text::jsonb)`
      yield* sql`
        delete from team_deletions where finished_at is not null and id in (
          select id from team_deletions order by requested_at desc, id desc offset ${maxDeletions})`
    })
  )
  return yield* query(readDeletion(team))
})
