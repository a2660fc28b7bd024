import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { SystemEventType } from "@tidegate/model/SystemEvents"
import type { Replayed, Routing } from "../bulk/Replays.ts"
import { withPartitions } from "../retention/Partitions.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { tellDue } from "./Emission.ts"
import { countFailures, resolveIssues } from "./Issues.ts"
import { listeningTeams, noteFacts, noteHealth, type Notice } from "./Notices.ts"
import { type Occurrence, takeOccurrences } from "./Occurrences.ts"

/** The type of event that each kind of occurrence becomes; a failed attempt becomes one only when it was the last of its event. */
const typeOf: { readonly [kind in Occurrence["kind"]]: SystemEventType } = {
  delivery: "event.failed",
  run: "workflow.run_failed",
  unverified: "source.unverified",
  channel: "channel.failing",
  queue: "queue.growing"
}

const noticeOf = (occurrence: Occurrence): Notice => {
  const { code, count, ended, ended_samples, first_at, kind, last_at, samples, subject_id, team_id } = occurrence
  const isDelivery = kind === "delivery"
  return {
    team_id,
    subject_id,
    type: typeOf[kind],
    facts: {
      count: isDelivery ? ended : count,
      codes: [code],
      samples: isDelivery ? ended_samples : samples,
      first: first_at.toISOString(),
      last: last_at.toISOString()
    }
  }
}

/** The result of one pass: the requests that it has made, and whether there is more to do at once. */
export interface Looked {
  readonly replayed: ReadonlyArray<Replayed>
  readonly more: boolean
}

const nothing: Looked = { replayed: [], more: false }

/** Whether there is something to do. It is asked every few seconds, so it is one statement that reads the beginning of three indexes. */
const isDue = Effect.fnUntraced(function* (now: number) {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const [row] = yield* sql<{ due: boolean }>`
    select exists (select from occurrences) or exists (select from system_notices where due_at <= ${at})
      or exists (select from issues where check_at <= ${at}) as due`
  return row?.due === true
})

/**
 * Makes issues and system events from recorded failures, in one transaction. So each occurrence counts once, and each event becomes one request, even
 * if a process dies. Only one process at a time does this. Another process finds the lock taken, and tries again later.
 */
export const raiseAlarms = Effect.fnUntraced(function* (
  routing: Routing,
  markOf: (teamId: string) => string,
  now: number
): Effect.fn.Return<Looked, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  if (!(yield* isDue(now))) return nothing
  const sql = yield* SqlClient.SqlClient
  const look = Effect.gen(function* () {
    const [lock] = yield* sql<{ free: boolean }>`select pg_try_advisory_xact_lock(hashtext('tidegate.alarms')) as free`
    if (lock?.free !== true) return nothing
    const { more, occurrences } = yield* takeOccurrences
    const failed = yield* countFailures(
      occurrences.filter(({ kind }) => kind === "delivery"),
      now
    )
    const resolved = yield* resolveIssues(now)
    const listening = yield* listeningTeams(occurrences.map(({ team_id }) => team_id))
    const told = occurrences.filter(
      ({ ended, kind, team_id }) => listening.has(team_id) && (kind !== "delivery" || ended > 0)
    )
    yield* noteFacts(told.map(noticeOf), now)
    yield* noteHealth([...new Set([...failed, ...resolved])], now)
    const done = yield* tellDue(routing, markOf, now)
    return { replayed: done.replayed, more: more || done.more }
  })
  return yield* withPartitions(sql)(sql.withTransaction(look))
})
