import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type {
  ConnectionMetrics,
  DestinationMetrics,
  RateList,
  SourceMetrics,
  TransformationMetrics,
  WorkflowMetrics
} from "@tidegate/model/Metrics"
import * as Columns from "../journal/Columns.ts"
import { binsByMeasure, total } from "../retention/RollupBins.ts"
import { connectionsByTransformation, executionFields, executionMeasures } from "./ExecutionCounts.ts"

/*
 * What happened at some resources in the last 24 hours, counted by the minute. An unknown id, or one of another team, has zeros.
 */

type Bins = ReadonlyArray<number>
type BinsOf = (measure: string) => Bins

const sum = (...bins: ReadonlyArray<Bins>): Bins => bins[0]!.map((_, at) => total(bins.map((counts) => counts[at]!)))

const eventMeasures = ["created", "successful", "failed", "cancelled"]

/** An event that was made and is not finished is pending. */
const eventFields = (of: BinsOf) => {
  const [created, successful, failed, cancelled] = eventMeasures.map(of) as [Bins, Bins, Bins, Bins]
  const pending = created.map((n, at) => Math.max(0, n - successful[at]! - failed[at]! - cancelled[at]!))
  return {
    events_24h_count: total(created),
    events_24h_successful_count: total(successful),
    events_24h_failed_count: total(failed),
    events_24h_pending_count: total(pending),
    events_24h_cancelled_count: total(cancelled),
    events_24h_bins: created,
    events_24h_successful_bins: successful,
    events_24h_failed_bins: failed,
    events_24h_pending_bins: pending,
    events_24h_cancelled_bins: cancelled
  }
}

const read = Effect.fnUntraced(function* (team: string, ids: ReadonlyArray<string>, measures: ReadonlyArray<string>) {
  return yield* binsByMeasure(yield* SqlClient.SqlClient, team, ids, measures, yield* Clock.currentTimeMillis)
})

type Connections = ReadonlyMap<string, number>

/** How many connections each of these sources or destinations has. */
const connectionsBy = Effect.fnUntraced(function* (
  column: "source_id" | "destination_id",
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<Connections, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string; count: number }>`
    select ${sql(column)} as id, count(*)::int4 as count from connections
    where ${sql(column)} = any(${Columns.text(ids)}) and team_id = ${team} and deleted_at is null group by 1`
  return new Map(rows.map(({ count, id }) => [id, count]))
})

export const sources = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<SourceMetrics>, SqlError.SqlError, SqlClient.SqlClient> {
  const of = yield* read(team, ids, ["accepted", "rejected", ...eventMeasures])
  const connections = yield* connectionsBy("source_id", team, ids)
  return ids.map((id) => {
    const accepted = of(id)("accepted")
    const rejected = of(id)("rejected")
    const all = total(accepted) + total(rejected)
    return {
      id,
      source_id: id,
      connections_count: connections.get(id) ?? 0,
      requests_24h_count: all,
      requests_24h_total_count: all,
      requests_24h_accepted_count: total(accepted),
      requests_24h_rejected_count: total(rejected),
      requests_24h_accepted_bins: accepted,
      requests_24h_rejected_bins: rejected,
      ...eventFields(of(id))
    }
  })
})

export const destinations = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<DestinationMetrics>, SqlError.SqlError, SqlClient.SqlClient> {
  const of = yield* read(team, ids, ["attempt_successful", "attempt_failed", ...eventMeasures])
  const connections = yield* connectionsBy("destination_id", team, ids)
  return ids.map((id) => {
    const attempts = sum(of(id)("attempt_successful"), of(id)("attempt_failed"))
    return {
      id,
      destination_id: id,
      connections_count: connections.get(id) ?? 0,
      attempts_24h_count: total(attempts),
      attempts_24h_bins: attempts,
      ...eventFields(of(id))
    }
  })
})

export const connections = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<ConnectionMetrics>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const of = yield* read(team, ids, eventMeasures)
  const rows = yield* sql<{ id: string; source_id: string; destination_id: string }>`
    select id, source_id, destination_id from connections
    where id = any(${Columns.text(ids)}) and team_id = ${team} and deleted_at is null`
  const ends = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => ({
    id,
    connection_id: id,
    webhook_id: id,
    source_id: ends.get(id)?.source_id ?? null,
    destination_id: ends.get(id)?.destination_id ?? null,
    ...eventFields(of(id))
  }))
})

export const transformations = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<TransformationMetrics>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const of = yield* read(team, ids, executionMeasures)
  const users = yield* connectionsByTransformation(sql, team, ids)
  return ids.map((id) => ({
    id,
    transformation_id: id,
    connections_count: users.get(id) ?? 0,
    ...executionFields(of(id))
  }))
})

export const workflows = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<WorkflowMetrics>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const measures = ["run", "run_succeeded", "run_failed", "run_ms"]
  const of = yield* binsByMeasure(sql, team, ids, measures, yield* Clock.currentTimeMillis, 24)
  return ids.map((id) => {
    const bins = of(id)("run")
    const failed = total(of(id)("run_failed"))
    const ended = failed + total(of(id)("run_succeeded"))
    return {
      id,
      workflow_id: id,
      runs_24h_count: total(bins),
      runs_24h_failed_count: failed,
      bins,
      avg_duration_ms: ended === 0 ? null : Math.round(total(of(id)("run_ms")) / ended)
    }
  })
})

const minuteMs = 60_000
/** Whole minutes that rates count, besides the current one. */
const wholeMinutes = 4
const rateMeasures = ["accepted", "rejected", "created", "successful", "failed", "attempt_successful", "attempt_failed"]

/**
 * The number of records of sources, connections and destinations in the current minute and the four before it. One read of counts returns all of
 * them, because a page that shows all connections of a team reads this every few seconds.
 */
export const rates = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<RateList, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const start = new Date((Math.floor(now / minuteMs) - wholeMinutes) * minuteMs)
  const rows = yield* sql<{ key_id: string; measure: string; count: number }>`
    select key_id, measure, sum(count)::float8 as count from counted
    where key_id = any(${Columns.text([...new Set(ids)])}) and team_id = ${team}
      and measure in (${sql.literal(rateMeasures.map((name) => `'${name}'`).join(", "))})
      and minute >= ${start} and minute <= ${new Date(now)}
    group by key_id, measure`
  const counts = new Map(rows.map(({ count, key_id, measure }) => [`${key_id} ${measure}`, count]))
  return {
    date_range: { start: start.toISOString(), end: new Date(now).toISOString() },
    count: ids.length,
    models: ids.map((id) => {
      const of = (...measures: ReadonlyArray<string>) => total(measures.map((name) => counts.get(`${id} ${name}`) ?? 0))
      return {
        id,
        requests_count: of("accepted", "rejected"),
        events_count: of("created"),
        successful_count: of("successful"),
        failed_count: of("failed"),
        attempts_count: of("attempt_successful", "attempt_failed")
      }
    })
  }
})
