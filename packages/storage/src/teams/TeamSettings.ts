import { Context, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import type { OwnTeam, Team } from "@tidegate/model/Team"
import { onFailureFault } from "@tidegate/resources/workflow/OnFailure"
import { type RetentionDefaults, retentionDefaults } from "../retention/Retention.ts"
import { binsTeam, holdTeam } from "./Teams.ts"
import { statusOf } from "../workflows/TeamFacts.ts"
import { transaction } from "../Transaction.ts"

/*
 * A team's own settings: its name, how long its data is kept, and its on-failure workflow. For the times, the operator's settings are the default and the maximum here;
 * an operator may set a longer time in the team's row.
 */

/** The operator's defaults. */
export const KeptDays = Context.Reference<RetentionDefaults>("@tidegate/storage/KeptDays", {
  defaultValue: () => retentionDefaults
})

interface Row {
  readonly id: string
  readonly name: string
  readonly members: number
  readonly created_at: Date
  readonly payload_retention_days: number | null
  readonly record_retention_days: number | null
  readonly on_failure_workflow_id: string | null
}

const toTeam = (row: Row, defaults: RetentionDefaults): Team => {
  const record_days = row.record_retention_days ?? defaults.recordDays
  return {
    id: row.id,
    name: row.name,
    members: row.members,
    retention: {
      payload_days: Math.min(row.payload_retention_days ?? defaults.payloadDays, record_days),
      record_days,
      most_payload_days: defaults.payloadDays,
      most_record_days: defaults.recordDays
    },
    on_failure_workflow_id: row.on_failure_workflow_id,
    created_at: row.created_at.toISOString()
  }
}

const rowOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select id, name, created_at, payload_retention_days, record_retention_days, on_failure_workflow_id,
      (select count(*)::int from memberships m where m.team_id = t.id) as members
    from teams t where id = ${id} and id <> ${binsTeam} and deleting_since is null`
  return row ?? (yield* notFound("team", id))
})

export const readTeam = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<Team, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  return toTeam(yield* rowOf(id), yield* KeptDays)
})

/** The teams with these ids, by name. */
export const teamsOf = Effect.fnUntraced(function* (
  memberships: ReadonlyArray<{ readonly team_id: string; readonly role: OwnTeam["role"] }>
): Effect.fn.Return<ReadonlyArray<OwnTeam>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const roles = new Map(memberships.map(({ role, team_id }) => [team_id, role]))
  const rows = yield* sql<{ id: string; name: string }>`
    select id, name from teams where id = any(${[...roles.keys()]}) order by name, id`
  return rows.map(({ id, name }) => ({ id, name, role: roles.get(id) ?? "member" }))
})

/** Absent members stay; null resets to the operator's default. */
export interface TeamChange {
  readonly name?: string | undefined
  readonly retention?:
    | { readonly payload_days?: number | null | undefined; readonly record_days?: number | null | undefined }
    | undefined
  readonly on_failure_workflow_id?: string | null | undefined
}

/** Faults of the requested days, checked together with the stored ones. */
const faultsOf = (
  asked: NonNullable<TeamChange["retention"]>,
  kept: { readonly payload: number | null; readonly record: number | null },
  { payloadDays, recordDays }: RetentionDefaults
) => {
  const max = { payload_days: payloadDays, record_days: recordDays }
  const beyond = (["payload_days", "record_days"] as const).flatMap((name) => {
    const days = asked[name] ?? null
    return days === null || days <= max[name]
      ? []
      : [
          {
            path: `retention.${name}`,
            message: `must be at most ${max[name]}, which is what the operator lets a team keep`
          }
        ]
  })
  const isLonger = kept.payload !== null && kept.payload > (kept.record ?? recordDays)
  return beyond.length > 0 || !isLonger
    ? beyond
    : [
        {
          path: "retention.payload_days",
          message: "must not be more than record_days: a payload without its record could not be found"
        }
      ]
}

export const updateTeam = Effect.fnUntraced(function* (
  id: string,
  { name, on_failure_workflow_id, retention = {} }: TeamChange
): Effect.fn.Return<Team, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const defaults = yield* KeptDays
  return yield* transaction(sql)(
    Effect.gen(function* () {
      yield* holdTeam(id)
      const before = yield* rowOf(id)
      const { payload_days = before.payload_retention_days, record_days = before.record_retention_days } = retention
      const faults = faultsOf(retention, { payload: payload_days, record: record_days }, defaults)
      if (faults.length > 0) return yield* invalid(faults)
      const onFailure = on_failure_workflow_id === undefined ? before.on_failure_workflow_id : on_failure_workflow_id
      if (onFailure !== null && onFailure !== before.on_failure_workflow_id) {
        const message = onFailureFault(yield* statusOf(sql, id, onFailure))
        if (message !== null) return yield* invalid([{ path: "on_failure_workflow_id", message }])
      }
      yield* sql`
        update teams set name = ${name ?? before.name}, payload_retention_days = ${payload_days}, record_retention_days = ${record_days},
          on_failure_workflow_id = ${onFailure}
        where id = ${id}`
      return toTeam(yield* rowOf(id), defaults)
    })
  )
})
