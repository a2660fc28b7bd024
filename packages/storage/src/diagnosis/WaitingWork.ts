import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Database } from "../Database.ts"
import { type Backlog, backlogs } from "../delivery/Backlog.ts"
import { runBacklog, type RunBacklog } from "../workflows/RunBacklog.ts"

/** At most so many routing jobs are counted. */
const maxCounted = 100_000

export interface WaitingWork {
  /** The largest backlogs of destinations, those that have been due for longest first. */
  readonly deliveries: ReadonlyArray<Backlog>
  readonly runs: RunBacklog
  readonly routes: {
    readonly waiting: number
    /** When the oldest of them was made (Unix ms); null: there is none. */
    readonly oldest: number | null
  }
}

/** The waiting rows of all shards. The cost is bounded like that of the parts, so this may be read while the gateway works. */
export const waitingWork = Effect.fnUntraced(function* (
  shards: number
): Effect.fn.Return<WaitingWork, SqlError.SqlError, Database> {
  const sql = yield* SqlClient.SqlClient
  const all = Array.from({ length: shards }, (_, index) => index + 1)
  const [routes] = yield* sql<{ waiting: number; oldest: Date | null }>`
    select count(*)::int4 as waiting, min(created_at) as oldest
    from (select created_at from pending_routes limit ${maxCounted}) first`
  return {
    deliveries: yield* backlogs(all),
    runs: yield* runBacklog(all),
    routes: { waiting: routes!.waiting, oldest: routes!.oldest?.getTime() ?? null }
  }
})
