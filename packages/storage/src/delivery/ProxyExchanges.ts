import type { PgTypes } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { isTransient, JournalSql } from "../Database.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { GroupCommit } from "../journal/GroupCommit.ts"
import { committed } from "../journal/JournalTelemetry.ts"
import { many, Rows } from "../journal/Rows.ts"

/** The exchange of a proxy source with its upstream about one request. Times are Unix milliseconds. */
export interface ProxyExchangeRecord {
  readonly requestId: string
  readonly teamId: string
  readonly sourceId: string
  /** The URL that was called, with the forwarded path and query. */
  readonly targetUrl: string
  readonly httpMethod: string
  /** Null: there was no response. */
  readonly responseStatus: number | null
  /** A JSON object; null: there was no response. */
  readonly responseHeaders: string | null
  /** The first bytes of the body, as sent; null: there was no response. */
  readonly responseBody: Uint8Array | null
  readonly responseBodyTruncated: boolean
  /** Why the caller did not get a complete response; null: it did. */
  readonly errorCode: string | null
  readonly errorText: string | null
  readonly startedAt: number
  /** When the status and the headers of the response arrived; null: there was no response. */
  readonly respondedAt: number | null
  /** From `startedAt` to `respondedAt`, in milliseconds. */
  readonly responseLatency: number | null
  /** When the exchange was over. */
  readonly createdAt: number
}

export interface ProxyExchangeStats {
  readonly written: number
  /** The number of lost exchanges: refused by the database, or too many were waiting. */
  readonly lost: number
  /** The number of batches. */
  readonly batches: number
  readonly waiting: number
  readonly waitingBytes: number
}

/** Limits of what waits for the database. */
const maxBytes = 32 * 1024 * 1024
const maxRows = 10_000

const retryMs = 200
/** How long closing waits for unwritten exchanges. */
const flushMs = 3_000

const bytesOf = (record: ProxyExchangeRecord): number =>
  512 + record.targetUrl.length + (record.responseHeaders?.length ?? 0) + (record.responseBody?.length ?? 0)

/**
 * Writes the exchanges of proxy sources, one row each, in batches. Callers do not wait for it: they have their response. The
 * request and its events are safe in the journal; an exchange is only a record of the past. It may be lost if keeping it would
 * need unlimited memory. Every loss is logged.
 */
export class ProxyExchanges extends Context.Service<
  ProxyExchanges,
  {
    /** A second record for the same request changes nothing. */
    readonly write: (exchange: ProxyExchangeRecord) => void
    readonly stats: () => ProxyExchangeStats
  }
>()("@tidegate/storage/ProxyExchanges") {
  /** Closing the scope writes what is waiting, for at most three seconds. */
  static readonly layer: Layer.Layer<ProxyExchanges, never, JournalSql> = Layer.effect(
    ProxyExchanges,
    Effect.suspend(() => make)
  )
}

const exchanges = new Rows<ProxyExchangeRecord>("given", [
  ["id", "text", ({ requestId }) => sibling(prefixes.proxyExchange, requestId)],
  ["team_id", "text", ({ teamId }) => teamId],
  ["source_id", "text", ({ sourceId }) => sourceId],
  ["request_id", "text", ({ requestId }) => requestId],
  ["target_url", "text", ({ targetUrl }) => targetUrl],
  ["http_method", "text", ({ httpMethod }) => httpMethod],
  ["response_status", "int4", ({ responseStatus }) => responseStatus],
  ["response_headers", "text", ({ responseHeaders }) => responseHeaders],
  ["response_body", "bytea", ({ responseBody }) => responseBody],
  ["response_body_truncated", "bool", ({ responseBodyTruncated }) => responseBodyTruncated],
  ["error_code", "text", ({ errorCode }) => errorCode],
  ["error_text", "text", ({ errorText }) => errorText],
  ["started_at", "timestamptz", ({ startedAt }) => startedAt],
  ["responded_at", "timestamptz", ({ respondedAt }) => respondedAt],
  ["response_latency", "int4", ({ responseLatency }) => responseLatency],
  ["created_at", "timestamptz", ({ createdAt }) => createdAt]
])

const statement = `
insert into proxy_exchanges (${exchanges.names})
select * from ${exchanges.from(1, many)}
on conflict (id) do nothing`

/** The commit of a batch; a request that already has an exchange keeps it. */
export const exchangeCommit = (
  records: ReadonlyArray<ProxyExchangeRecord>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter> } => ({
  statement,
  parameters: exchanges.bind(records, false).parameters
})

const make = Effect.gen(function* () {
  const sql = yield* JournalSql
  const run = Effect.runForkWith(yield* Effect.context())
  let written = 0
  let lost = 0
  /** Exchanges that were lost because too many waited, and that are not logged yet. */
  let dropped = 0
  let waiting = 0
  let closed = false
  let onWritten: (() => void) | undefined

  const insert = (records: ReadonlyArray<ProxyExchangeRecord>) =>
    Effect.suspend(() => {
      const { parameters, statement } = exchangeCommit(records)
      return sql.unsafe(statement, parameters)
    }).pipe(withPartitions(sql))

  const lose = (records: ReadonlyArray<ProxyExchangeRecord>, cause: unknown): Effect.Effect<void> =>
    Effect.suspend(() => {
      lost += records.length
      return Effect.logError("proxy exchanges could not be stored", {
        request_ids: records.slice(0, 10).map(({ requestId }) => requestId),
        count: records.length,
        cause
      })
    })

  const store = (records: ReadonlyArray<ProxyExchangeRecord>): Effect.Effect<void> =>
    insert(records).pipe(
      Effect.matchEffect({
        onSuccess: () => Effect.sync(() => void (written += records.length)),
        onFailure: (error: SqlError.SqlError) =>
          isTransient(error)
            ? closed
              ? lose(records, error)
              : Effect.andThen(Effect.sleep(retryMs), store(records))
            : isolate(records, error)
      }),
      // A record that cannot be encoded is treated as one that the database refuses.
      Effect.catchDefect((cause) => isolate(records, cause))
    )

  /** A record that the database refuses must not affect the others. */
  const isolate = (records: ReadonlyArray<ProxyExchangeRecord>, cause: unknown): Effect.Effect<void> => {
    if (records.length === 1) return lose(records, cause)
    const half = records.length >> 1
    return Effect.andThen(store(records.slice(0, half)), store(records.slice(half)))
  }

  /** Lost exchanges are logged once for each batch, not one by one, because there may be very many. */
  const logDropped = Effect.suspend(() => {
    if (dropped === 0) return Effect.void
    const count = dropped
    dropped = 0
    return Effect.logError("proxy exchanges were dropped: too many wait for the database", { count })
  })

  const commits = new GroupCommit<ProxyExchangeRecord>({
    committed: committed("proxy_exchange"),
    commit: (records) =>
      store(records).pipe(
        Effect.andThen(logDropped),
        Effect.andThen(
          Effect.sync(() => {
            waiting -= records.length
            if (waiting === 0) onWritten?.()
          })
        )
      ),
    concurrency: 1,
    maxRows: 200,
    maxBytes: 4 * 1024 * 1024,
    parallelFrom: 1,
    sizeOf: bytesOf,
    run
  })

  yield* Effect.addFinalizer(() =>
    Effect.callback<void>((resume) => {
      if (waiting === 0) resume(Effect.void)
      else onWritten = () => resume(Effect.void)
    }).pipe(
      Effect.timeoutOption(flushMs),
      // Remaining retries are given up, so that no fiber outlives its database.
      Effect.andThen(Effect.sync(() => (closed = true)))
    )
  )

  return ProxyExchanges.of({
    write: (exchange) => {
      if (commits.pendingBytes < maxBytes && commits.pendingItems < maxRows) {
        waiting++
        return commits.add(exchange)
      }
      lost++
      // The first loss is logged at once, the others when the database answers again.
      if (dropped++ === 0) run(Effect.logError("proxy exchanges are being dropped: too many wait for the database"))
    },
    stats: () => ({
      written,
      lost,
      batches: commits.commits,
      waiting: commits.pendingItems,
      waitingBytes: commits.pendingBytes
    })
  })
})
