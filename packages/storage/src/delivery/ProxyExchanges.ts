import type { PgTypes } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { isTransient, JournalSql } from "../Database.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { GroupCommit } from "../journal/GroupCommit.ts"
import { committed } from "../journal/JournalTelemetry.ts"
import { many, Rows } from "../journal/Rows.ts"

/** What the upstream of a proxy source answered to one request. Times are Unix milliseconds. */
export interface ProxyExchangeRecord {
  readonly requestId: string
  readonly teamId: string
  readonly sourceId: string
  /** The URL that was called, with the forwarded path and query. */
  readonly targetUrl: string
  readonly httpMethod: string
  /** Null when no answer came. */
  readonly responseStatus: number | null
  /** JSON object, or null when no answer came. */
  readonly responseHeaders: string | null
  /** The first bytes of the body, as sent; null when no answer came. */
  readonly responseBody: Uint8Array | null
  readonly responseBodyTruncated: boolean
  /** Why the caller did not get a whole answer; null when it did. */
  readonly errorCode: string | null
  readonly errorText: string | null
  readonly startedAt: number
  /** When the status and the headers of the answer were there; null when none came. */
  readonly respondedAt: number | null
  /** From `startedAt` to `respondedAt`, in milliseconds. */
  readonly responseLatency: number | null
  /** When the exchange was over. */
  readonly createdAt: number
}

export interface ProxyExchangeStats {
  readonly written: number
  /** Lost: refused by the database, or too much waited for it already. */
  readonly lost: number
  /** Batches so far. */
  readonly batches: number
  readonly waiting: number
  readonly waitingBytes: number
}

/** What may wait for the database. */
const maxBytes = 32 * 1024 * 1024
const maxItems = 10_000

const retryMs = 200
/** How long closing waits for what has not been written. */
const flushMs = 3_000

const bytesOf = (record: ProxyExchangeRecord): number =>
  512 + record.targetUrl.length + (record.responseHeaders?.length ?? 0) + (record.responseBody?.length ?? 0)

/**
 * Writes the exchanges of proxy sources, one row each, in batches of what has gathered. Nobody waits for it: the caller
 * has its answer. The request and its events are safe in the journal; an exchange is the trace of a conversation that is
 * over, so it may be lost where keeping it would cost memory without limit. Every loss is logged.
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

/** The commit of a batch; a request that has its exchange keeps that one. */
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
  /** Those lost because too much waited, as far as they have not been logged yet. */
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
      // A record that cannot even be sent is refused like one that the database refuses.
      Effect.catchDefect((cause) => isolate(records, cause))
    )

  /** One record the database refuses must not take the others with it. */
  const isolate = (records: ReadonlyArray<ProxyExchangeRecord>, cause: unknown): Effect.Effect<void> => {
    if (records.length === 1) return lose(records, cause)
    const half = records.length >> 1
    return Effect.andThen(store(records.slice(0, half)), store(records.slice(half)))
  }

  /** Exchanges that are lost because too much waits are logged once per batch, not once each: they come in floods. */
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
    maxItems: 200,
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
      // What is still to be tried is given up, so that no fiber outlives its database.
      Effect.andThen(Effect.sync(() => (closed = true)))
    )
  )

  return ProxyExchanges.of({
    write: (exchange) => {
      if (commits.pendingBytes < maxBytes && commits.pendingItems < maxItems) {
        waiting++
        return commits.add(exchange)
      }
      lost++
      // The first of a flood is said at once, the others when the database answers again.
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
