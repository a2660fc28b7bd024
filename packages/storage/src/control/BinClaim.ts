import { randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import { binOf, firstRequestOf } from "./Bins.ts"
import * as Columns from "../journal/Columns.ts"
import { minuteOfId, writeCounts } from "../journal/CountStatement.ts"
import { openPresented, sealPresented } from "../secrets/PresentedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { takePlace } from "../teams/TeamCounts.ts"
import { binsTeam } from "../teams/Teams.ts"
import { transaction } from "../Transaction.ts"

/**
 * Makes a bin a source of the team, with all requests that it has received, in one transaction. It locks the bin's row, in which
 * each stored request is counted: earlier requests move, and later ones wait for the lock and then find a source of the team. The
 * bin's token is invalid from then on.
 */
export const claimBin = Effect.fnUntraced(function* (claimed: {
  readonly id: string
  readonly token: string
  readonly team_id: string
}): Effect.fn.Return<void, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const { id, team_id, token } = claimed
  const at = new Date(yield* Clock.currentTimeMillis)
  yield* transaction(sql)(
    Effect.gen(function* () {
      const bin = yield* binOf(id, token, "lock")
      if (bin.claimed_at !== null) {
        // This claim itself, repeated because it was not known whether it was committed.
        const isDone = bin.team_id === team_id && bin.claimed_at.getTime() === at.getTime()
        return yield* isDone ? Effect.void : fail("BIN_ALREADY_CLAIMED", "the bin was claimed already")
      }
      yield* takePlace(sql, "sources", { id, team_id })
      yield* sql`update public_bins set team_id = ${team_id}, claimed_at = ${at} where source_id = ${id}`
      // A bin's name is derived from its id. Only a member of the team could have given that name to another source.
      yield* sql`
        update sources s set team_id = ${team_id}, version = version + 1, updated_at = ${at},
          name = case when exists (
            select from sources o where o.team_id = ${team_id} and o.name = s.name and o.deleted_at is null
          ) then name || ${`-${randomBytes(4).toString("hex")}`} else name end
        where id = ${id} and team_id = ${binsTeam}`
      return yield* moveRequests({ id, team_id, from: firstRequestOf(bin.created_at.getTime()) })
    })
  )
})

interface Moved {
  readonly id: string
  readonly team_id: string
  /** All ids of its requests are at least this. */
  readonly from: string
}

/**
 * Moves the requests of a bin to the team: the credentials that senders presented are encrypted again for the team, and the
 * requests are counted.
 */
const moveRequests = Effect.fnUntraced(function* ({
  id,
  from,
  team_id
}: Moved): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const presented = yield* sql<{ id: string; presented: string }>`
    select id, presented from requests
    where source_id = ${id} and team_id = ${binsTeam} and id >= ${from} and presented is not null`
  const sealed: Array<readonly [id: string, sealed: string]> = []
  for (const row of presented) {
    const startedAt = performance.now()
    const opened = openPresented(secrets, { team_id: binsTeam, id: row.id }, row.presented)
    // Credentials that cannot be decrypted stay so: they are not delivered, and neither is the request.
    if (opened !== null) sealed.push([row.id, sealPresented(secrets, { team_id, id: row.id }, opened)])
    if (sealed.length % 32 === 0) yield* yieldIfSpent(startedAt)
  }
  yield* sql`
    with moved as (
      update requests r set team_id = ${team_id}, presented = coalesce((
        select p.sealed from unnest(${Columns.text(sealed.map(([request]) => request))}, ${Columns.text(sealed.map(([, value]) => value))})
          as p (id, sealed) where p.id = r.id
      ), r.presented)
      where r.source_id = ${id} and r.team_id = ${binsTeam} and r.id >= ${from}
      returning r.id, r.source_id, r.status, r.team_id
    )
    ${sql.literal(writeCounts(movedCounts))}`
})

const movedCounts = `(
  select source_id as key_id, null::text as source_id, null::text as destination_id, status as measure, ${minuteOfId("id")} as minute,
    team_id, count(*) as n
  from moved group by 1, 4, 5, 6
) as c`
