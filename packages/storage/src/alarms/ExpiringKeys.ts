import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { formerSecretWarnedHours, keyWarnedHours, type SystemEventType } from "@tidegate/model/SystemEvents"
import { systemType } from "@tidegate/model/SystemSource"
import * as Columns from "../journal/Columns.ts"
import { type Facts, keptMs } from "./Notices.ts"

/** Warnings that one look notes. What is beyond waits for the next look, because noted ones are not found again. */
const atOnce = 500
const hourMs = 3_600_000

interface Expiring {
  readonly team_id: string
  readonly id: string
  readonly expires_at: Date
  /** How many hours before the end the warning is due. */
  readonly hours: number
  /** Which warning it is: the end, and the hours. */
  readonly mark: string
}

/** Where keys with an end are stored. A new place is a row. `warnedHours`: how many hours before the end its team is warned. */
const places = (sql: SqlClient.SqlClient) => [
  {
    warnedHours: keyWarnedHours,
    rows: sql`select team_id, id, expires_at, expiry_set_at as set_at from project_api_keys where status = 'active'`
  },
  {
    warnedHours: formerSecretWarnedHours,
    rows: sql`select team_id, team_id as id, previous_signing_secret_until as expires_at, signing_secret_rotated_at as set_at
      from project_secrets where previous_signing_secret is not null`
  }
]

/**
 * Writes which keys end soon: the latest warning that is due, once for each end and time before it. `reported` of the notice says
 * which one was given, so neither another process nor a restart gives it again, and a key whose end was moved has new ones.
 */
export const noteExpiringKeys = Effect.fnUntraced(function* (
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const type = "key.expiring" satisfies SystemEventType
  const seen = at.toISOString()
  for (const { rows, warnedHours } of places(sql)) {
    const found = yield* sql<Expiring>`
      select k.team_id, k.id, k.expires_at, w.hours, w.mark
      from (${rows}) k cross join lateral (
        select b.hours, to_char(k.expires_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS') || ' ' || b.hours as mark
        from unnest(${Columns.int4(warnedHours)}) as b (hours)
        where k.expires_at - b.hours * interval '1 hour' <= ${at}
          and (k.set_at is null or k.expires_at - b.hours * interval '1 hour' > k.set_at)
        order by b.hours limit 1
      ) w
      where k.expires_at > ${at} and k.expires_at <= ${new Date(now + Math.max(...warnedHours) * hourMs)}
        and exists (
          select from sources s
          where s.type = ${systemType} and s.team_id = k.team_id and s.deleted_at is null and s.disabled_at is null
        )
        and not exists (
          select from system_notices n where n.subject_id = k.id and n.type = ${type} and n.reported = w.mark
        )
      order by k.expires_at limit ${atOnce}`
    if (found.length === 0) continue
    const factsOf = ({ expires_at, hours }: Expiring): Facts => ({
      count: 1,
      codes: [],
      samples: [],
      first: seen,
      last: seen,
      expiry: { at: expires_at.toISOString(), hours }
    })
    // Another process that has found the same rows waits for this statement, and then finds them reported.
    yield* sql`
      insert into system_notices (team_id, type, subject_id, facts, reported, due_at, expires_at)
      select k.team_id, ${type}, k.id, k.facts::jsonb, k.mark, ${at}, ${new Date(now + keptMs(type))}
      from unnest(${Columns.text(found.map(({ team_id }) => team_id))}, ${Columns.text(found.map(({ id }) => id))},
        ${Columns.text(found.map((one) => JSON.stringify(factsOf(one))))}, ${Columns.text(found.map(({ mark }) => mark))})
        as k (team_id, id, facts, mark)
      order by k.id
      on conflict (subject_id, type) do update
      set facts = excluded.facts, reported = excluded.reported, due_at = excluded.due_at, expires_at = excluded.expires_at
      where system_notices.reported is distinct from excluded.reported`
  }
})
