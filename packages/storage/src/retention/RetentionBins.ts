import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { firstRequestOf, forgottenBefore } from "../control/Bins.ts"
import { binsTeam } from "../teams/Teams.ts"

/** Bins of one statement. */
const batch = 500

/**
 * Removes bins that were not claimed in time: their requests at once, and their rows later. Returns how many rows were removed.
 */
export const removeBins = Effect.fnUntraced(function* (
  now: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  let total = 0
  let count = 1
  while (count > 0) {
    count = yield* emptyOne(now)
    total += count
  }
  do {
    count = yield* forget(now)
    total += count
  } while (count === batch)
  return total
})

/**
 * Deletes the requests of one expired bin. The bin is locked meanwhile; the next run finds what an ingress process with a late
 * clock stores afterwards.
 */
const emptyOne = Effect.fnUntraced(function* (now: number) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      const [bin] = yield* sql<{ source_id: string; created_at: Date; captured: number }>`
        select source_id, created_at, captured from public_bins
        where claimed_at is null and expires_at <= ${new Date(now)} and captured > 0
        order by expires_at limit 1 for update skip locked`
      if (bin === undefined) return 0
      const { captured, created_at, source_id } = bin
      yield* sql`
        delete from requests where source_id = ${source_id} and team_id = ${binsTeam}
          and id >= ${firstRequestOf(created_at.getTime())}`
      yield* sql`update public_bins set captured = 0 where source_id = ${source_id}`
      return captured
    })
  )
})

const forget = Effect.fnUntraced(function* (now: number) {
  const sql = yield* SqlClient.SqlClient
  const gone = yield* sql`
    with gone as (
      delete from public_bins where ctid = any(array(
        select ctid from public_bins
        where claimed_at is null and expires_at <= ${forgottenBefore(now)} and captured = 0
        limit ${batch} for update skip locked))
      returning source_id
    )
    delete from sources where id in (select source_id from gone) and team_id = ${binsTeam} returning 1`
  return gone.length
})
