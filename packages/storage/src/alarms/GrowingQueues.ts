import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { systemType } from "@tidegate/model/SystemSource"
import type { HotSql } from "../Database.ts"
import { backlogs } from "../delivery/Backlog.ts"
import * as Columns from "../journal/Columns.ts"

/** How long (ms) the oldest event of a queue has been due when the queue counts as growing. */
export const growingAfterMs = 10 * 60_000

/**
 * Writes which queues are growing. Events of a system source do not count: a queue that is full of them must not cause more. The
 * cost is that of `backlogs`, and one index probe for each connection of the queues found.
 */
export const noteGrowingQueues = Effect.fnUntraced(function* (
  shards: ReadonlyArray<number>,
  shardOf: (destinationId: string) => number,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, HotSql | SqlClient.SqlClient> {
  const late = now - growingAfterMs
  const behind = (yield* backlogs(shards)).flatMap(({ destinationId, oldestDue, waiting }) =>
    oldestDue !== null && oldestDue <= late ? [{ id: destinationId, oldestDue, waiting }] : []
  )
  if (behind.length === 0) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into occurrences (team_id, kind, subject_id, code, count, first_at, last_at)
    select d.team_id, 'queue', d.id, 'QUEUE_GROWING', b.waiting, b.oldest, ${new Date(now)}
    from unnest(${Columns.text(behind.map(({ id }) => id))}, ${Columns.int4(behind.map(({ id }) => shardOf(id)))},
        ${Columns.int4(behind.map(({ waiting }) => waiting))}, ${Columns.timestamptz(behind.map(({ oldestDue }) => oldestDue))})
        as b (id, shard, waiting, oldest)
      join destinations d on d.id = b.id and d.deleted_at is null
    where exists (
      select from connections c join sources s on s.id = c.source_id
      where c.destination_id = d.id and c.deleted_at is null and c.paused_at is null and s.type <> ${systemType}
        and exists (
          select from deliveries q where q.shard = b.shard and q.destination_id = d.id and q.connection_id = c.id
            and q.due_at <= ${new Date(late)}
        )
    )`
})
