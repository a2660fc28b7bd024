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
 * Makes a bin a source of the team, with all that it has received, in one transaction. It holds the bin's row, which each request is counted in
 * as it is stored: those that were before it move, and those that come meanwhile wait for it, and find a source of the team. Its token is
 * worth nothing from then on.
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
        // Its own, when it is taken again because nobody knew whether it was committed.
        const isDone = bin.team_id === team_id && bin.claimed_at.getTime() === at.getTime()
        return yield* isDone ? Effect.void : fail("BIN_ALREADY_CLAIMED", "the bin was claimed already")
      }
      yield* takePlace(sql, "sources", { id, team_id })
      yield* sql`update public_bins set team_id = ${team_id}, claimed_at = ${at} where source_id = ${id}`
      // Its name is its id's. Only somebody of the team could have given it to another source.
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
  /** No id of theirs is less. */
  readonly from: string
}

/** Gives the team the requests of a bin, with what their senders presented sealed for it, and counts them. */
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
    // One that cannot be read stays so: what its sender presented is not delivered, and neither is the request.
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
