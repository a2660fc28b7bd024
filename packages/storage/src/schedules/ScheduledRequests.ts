import { Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { writeJson } from "@tidegate/json/NumberMarks"
import { prefixes, seededId } from "@tidegate/model/Ids"
import { scheduledAtHeader, type ScheduleSettings } from "@tidegate/model/ScheduledSource"
import { compileScheduledBody } from "@tidegate/rules/ScheduledBody"
import { inSlices, yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { compileSchedule, ticksOf } from "@tidegate/workflows/triggers/Schedule"
import { type Replay, type Replayed, type Routing, storeReplays } from "../bulk/Replays.ts"
import { withPartitions } from "../retention/Partitions.ts"
import type { Secrets } from "../secrets/Secrets.ts"

/**
 * The requests of schedules. The transaction that stores the request of a time moves the schedule on, so each time makes one request,
 * however many processes look. The request's id is derived from the source and the time as well: a time that comes again, because a schedule
 * was changed while the clock went back, makes no second one.
 */

/** Schedules that one transaction works on, and the bytes of the bodies after which it takes no further one. */
const atOnce = 20
const bytesAtOnce = 2 * 1024 * 1024
/** The partition of an older time (ms) may be gone already, with the request that is stored there: then its request is one of today. */
const oldMs = 86_400_000

interface DueSource {
  readonly id: string
  readonly team_id: string
  readonly name: string
  readonly schedule: ScheduleSettings
  readonly due_at: Date
}

const requestIdOf = (source_id: string, time: number, now: number): string =>
  seededId(prefixes.request, now - time > oldMs ? now : time, `${source_id}/${time}`)

/** The requests of one source, for these times. Resumable, because there may be a hundred large bodies. */
function* requestsOf(
  { id: source_id, name, schedule, team_id }: DueSource,
  times: ReadonlyArray<number>,
  now: number
): Resumable<ReadonlyArray<Replay>> {
  const { cron, timezone } = schedule
  const compiled = Result.getOrNull(compileScheduledBody(schedule.body))
  if (compiled === null) return []
  const requests: Array<Replay> = []
  for (const time of times) {
    const scheduled_at = new Date(time).toISOString()
    const id = requestIdOf(source_id, time, now)
    const body = writeJson(compiled({ scheduled_at, cron, timezone, source: { id: source_id, name } }))
    requests.push({
      id,
      team_id,
      source_id,
      message: {
        method: "POST",
        path: "/",
        query: "",
        headers: { ...schedule.headers, "content-type": "application/json", [scheduledAtHeader]: scheduled_at },
        body: Buffer.from(body, "utf8")
      },
      presented: null,
      presentedOf: id,
      verified: true,
      original_ip: null,
      external_id: null,
      retry: null
    })
    yield
  }
  return requests
}

/** The requests that a run has made, and whether there may be more to do at once. */
export interface MadeRequests {
  readonly made: ReadonlyArray<Replayed>
  readonly more: boolean
}

/** Makes the requests of schedules that are due at `now` (Unix ms). */
export const makeScheduled = Effect.fnUntraced(function* (
  now: number,
  routing: Routing
): Effect.fn.Return<MadeRequests, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const look = Effect.gen(function* () {
    // A change of a source locks the source, and then its schedule. This read waits for neither: a locked schedule is still due at the next read.
    const due = yield* sql<DueSource>`
      select s.id, s.team_id, s.name, s.config -> 'schedule' as schedule, x.due_at
      from source_schedules x join sources s on s.id = x.source_id
      where x.due_at <= ${new Date(now)} and s.disabled_at is null and s.deleted_at is null and s.config -> 'schedule' is not null
      order by x.due_at limit ${atOnce}
      for update of x skip locked for share of s skip locked`
    const made: Array<Replayed> = []
    let [bytes, done] = [0, 0]
    for (const source of due) {
      if (bytes > bytesAtOnce) break
      const since = performance.now()
      const { cron, missed, timezone } = source.schedule
      const compiled = Result.getOrNull(compileSchedule(cron, timezone))
      const { begin, next } =
        compiled === null ? { begin: [], next: null } : ticksOf(compiled, missed, source.due_at.getTime(), now)
      yield* yieldIfSpent(since)
      const requests = yield* inSlices(requestsOf(source, begin, now))
      if (requests.length > 0) {
        const stored = yield* storeReplays(requests, routing)
        made.push(...stored.filter((one) => typeof one === "object"))
      }
      yield* sql`
        update source_schedules set due_at = ${next === null ? null : new Date(next)} where source_id = ${source.id}`
      for (const { message } of requests) bytes += message.body?.length ?? 0
      done++
    }
    return { made, more: due.length === atOnce || done < due.length }
  })
  return yield* withPartitions(sql)(sql.withTransaction(look))
})

/** When the next schedule is due (Unix ms). Null: none is. */
export const nextScheduledRequest: Effect.Effect<number | null, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ due_at: Date }>`
      select x.due_at from source_schedules x join sources s on s.id = x.source_id
      where x.due_at is not null and s.disabled_at is null and s.deleted_at is null order by x.due_at limit 1`
    return row?.due_at.getTime() ?? null
  }
)
