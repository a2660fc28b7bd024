import { Cause, Clock, Context, Effect, Layer, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import { isTransient, JournalSql } from "./Database.ts"
import { acceptCommit, type RequestRecord, storedLookup } from "./journal/AcceptStatement.ts"
import { type AttemptRecord, attemptCommit, type Recorded } from "./journal/AttemptStatement.ts"
import { addingUp } from "./journal/Counting.ts"
import { GroupCommit } from "./journal/GroupCommit.ts"
import { attemptTelemetry, committed, type JournalStats, watchWaiting } from "./journal/JournalTelemetry.ts"
import { markCommit, type MarkRecord } from "./journal/MarkStatement.ts"
import { refusable } from "./journal/Refusable.ts"
import { type Settlement, settling } from "./journal/Settling.ts"
import { withPartitions } from "./retention/Partitions.ts"

export type { Settlement, SettlementOutcome } from "./journal/Settling.ts"
export type { Recorded } from "./journal/AttemptStatement.ts"
export type { IgnoredEvent, RoutingJob, RequestRecord, RoutedEvent, RoutedRun } from "./journal/AcceptStatement.ts"

/**
 * The result of a request. `committed`: it is stored. `stale`: it was routed by an outdated version of its source; nothing was
 * written, and it has to be routed again. `unavailable`: the database could not be reached in time; the request may or may not be
 * stored, and the sender has to repeat it. `failed`: the database refused it; logged with its cause.
 */
export type Accepted = "committed" | "stale" | "unavailable" | "failed"

interface Acceptance {
  readonly record: RequestRecord
  /** When it was passed to the journal (Unix ms): its time-out counts from then, whatever it waits for. */
  readonly since: number
  readonly done: (outcome: Accepted) => void
}

interface Attempt {
  readonly record: AttemptRecord
  readonly done: (outcome: Recorded) => void
}

interface Mark extends MarkRecord {
  readonly done: (marked: boolean) => void
}

/** How long a request waits for a database that does not answer before its sender gets a 503. */
const acceptPatienceMs = 4_000

/** Above this the journal is full: ingress sheds requests (fails closed, because memory is bounded). */
const fullAtBytes = 96 * 1024 * 1024
const fullAtItems = 20_000

/** Concurrent commits of requests, and the same number of attempts. */
const lanesEach = 2
/**
 * Requests of this size (bytes) and more are committed one batch after the other, separately from the others: writing ten
 * megabytes takes a tenth of a second, and a sender of one kilobyte must not wait for that.
 */
const largeFromBytes = 512 * 1024

const bytesOf = (record: RequestRecord): number =>
  record.bodySize + record.headers.length + (record.presented?.length ?? 0) + 512

/**
 * The only writer of the event path, one per process: callers pass records and are called back when they are committed. It
 * commits what has gathered in one statement, so all records that arrived meanwhile share the cost of a commit.
 */
export class Journal extends Context.Service<
  Journal,
  {
    /** Whether the journal holds as much as it may, so that the next request would have to wait. */
    readonly isFull: () => boolean
    /** Whether requests are stored several times more slowly than they could be: work that can wait should wait. */
    readonly isSlow: () => boolean
    readonly accept: (record: RequestRecord, done: (outcome: Accepted) => void) => void
    /** Never gives up: an attempt is recorded once the database answers again. Callers limit how much they pass at once. */
    readonly record: (record: AttemptRecord, done: (outcome: Recorded) => void) => void
    /** Stores the start of a rate-limited delivery before it starts. */
    readonly mark: (eventId: string, startedAt: number, done: (marked: boolean) => void) => void
    /** Replaces routing jobs by their results. Callers limit how much they pass at once. */
    readonly settle: (settlement: Settlement) => void
    readonly stats: () => JournalStats
  }
>()("@tidegate/storage/Journal") {
  static readonly layer: Layer.Layer<Journal, never, JournalSql> = Layer.effect(
    Journal,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* JournalSql
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<Scope.Scope>()
  const run = Effect.runForkWith(context)
  const recorded = yield* attemptTelemetry

  const now = (): number => clock.currentTimeMillisUnsafe()

  /** Calls one caller back. An exception there must affect neither the other answers of the batch nor its commit. */
  const tell = <Outcome>(done: (outcome: Outcome) => void, outcome: Outcome): void => {
    try {
      done(outcome)
    } catch (cause) {
      run(Effect.logError("a caller of the journal broke down over its answer", Cause.die(cause)))
    }
  }

  /** The stored ids of the batch: a commit whose answer was lost either happened completely or not at all. */
  const storedIds = (items: ReadonlyArray<Acceptance>) =>
    Effect.map(
      Effect.suspend(() => {
        const { parameters, statement } = storedLookup(items.map(({ record }) => record.id))
        return sql.unsafe<{ id: string }>(statement, parameters)
      }),
      (rows) => new Set(rows.map((row) => row.id))
    )

  const accept = (items: ReadonlyArray<Acceptance>): Effect.Effect<void, SqlError.SqlError> =>
    Effect.suspend(() => {
      const { pairs, parameters, statement } = acceptCommit(items.map((item) => item.record))
      return Effect.map(sql.unsafe(statement, parameters).values, (rows) => {
        const stale = new Set((rows[0]?.[0] ?? []) as ReadonlyArray<number>)
        for (let i = 0; i < items.length; i++) tell(items[i]!.done, stale.has(pairs[i]!) ? "stale" : "committed")
      })
    }).pipe(refusable, withPartitions(sql))

  const commitAccepted = (items: ReadonlyArray<Acceptance>): Effect.Effect<void> =>
    accept(items).pipe(Effect.catch((error) => recoverAccepted(items, error, items[0]!.since + acceptPatienceMs)))

  const recoverAccepted = (
    items: ReadonlyArray<Acceptance>,
    error: SqlError.SqlError,
    until: number
  ): Effect.Effect<void> => {
    if (!isTransient(error) && error.reason._tag !== "UniqueViolation") return isolate(items, error)
    if (now() >= until) {
      return Effect.andThen(
        Effect.logWarning("requests turned away: the database does not answer", error),
        Effect.sync(() => answer(items, "unavailable"))
      )
    }
    return Effect.sleep(100).pipe(
      Effect.andThen(storedIds(items)),
      Effect.flatMap((stored) => {
        const open = items.filter((item) => !stored.has(item.record.id))
        for (const item of items) if (stored.has(item.record.id)) tell(item.done, "committed")
        return open.length === 0 ? Effect.void : Effect.asVoid(accept(open))
      }),
      Effect.catch((again) => recoverAccepted(items, again, until))
    )
  }

  /** One record that the database refuses must not fail the others. */
  const isolate = (items: ReadonlyArray<Acceptance>, error: SqlError.SqlError): Effect.Effect<void> => {
    if (items.length === 1) return refuse(items, error)
    const half = items.length >> 1
    return Effect.andThen(commitAccepted(items.slice(0, half)), commitAccepted(items.slice(half)))
  }

  const refuse = (items: ReadonlyArray<Acceptance>, error: SqlError.SqlError): Effect.Effect<void> =>
    Effect.andThen(
      Effect.annotateLogs(
        Effect.logError("a request could not be stored", { request_id: items[0]?.record.id, error }),
        {
          error_id: items[0]?.record.id
        }
      ),
      Effect.sync(() => answer(items, isTransient(error) ? "unavailable" : "failed"))
    )

  const answer = (items: ReadonlyArray<Acceptance>, outcome: Accepted): void => {
    for (const item of items) tell(item.done, outcome)
  }

  const commitAttempts = (items: ReadonlyArray<Attempt>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { parameters, statement } = attemptCommit(items.map((item) => item.record))
      return sql.unsafe(statement, parameters).values
    }).pipe(
      refusable,
      Effect.map((rows) => {
        const states = new Map(rows.map((row) => [row[0] as string, row[1] as Recorded]))
        for (const item of items) {
          const state = states.get(item.record.eventId) ?? "superseded"
          tell(item.done, state)
          recorded(item.record, state)
        }
      }),
      Effect.catch((error) => {
        if (isTransient(error)) {
          return Effect.andThen(Effect.sleep(200), commitAttempts(items))
        }
        if (items.length > 1) {
          const half = items.length >> 1
          return Effect.andThen(commitAttempts(items.slice(0, half)), commitAttempts(items.slice(half)))
        }
        return Effect.andThen(
          Effect.logError("an attempt could not be recorded", { event_id: items[0]?.record.eventId, error }),
          Effect.sync(() => items.forEach((item) => tell(item.done, "superseded")))
        )
      })
    )

  const commitMarks = (items: ReadonlyArray<Mark>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { parameters, statement } = markCommit(items)
      return sql.unsafe(statement, parameters)
    }).pipe(
      refusable,
      Effect.match({
        onSuccess: () => items.forEach((item) => tell(item.done, true)),
        onFailure: () => items.forEach((item) => tell(item.done, false))
      })
    )

  const counted = yield* addingUp
  /** Counts a commit and its records in the metrics. */
  const counting = (kind: "accept" | "attempt" | "settle") => {
    const tellOf = committed(kind)
    return (items: number, bytes: number, seconds: number): void => {
      tellOf(items, bytes, seconds)
      counted(items)
    }
  }

  const acceptances = new GroupCommit<Acceptance>({
    committed: counting("accept"),
    commit: commitAccepted,
    lanes: lanesEach,
    maxItems: 400,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 24,
    sizeOf: (item) => bytesOf(item.record),
    run
  })
  const largeAcceptances = new GroupCommit<Acceptance>({
    committed: counting("accept"),
    commit: commitAccepted,
    lanes: 1,
    maxItems: 400,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 1,
    sizeOf: (item) => bytesOf(item.record),
    run
  })
  const attempts = new GroupCommit<Attempt>({
    committed: counting("attempt"),
    commit: commitAttempts,
    lanes: lanesEach,
    maxItems: 400,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 24,
    sizeOf: (item) => 512 + (item.record.body?.length ?? 0),
    run
  })
  const marks = new GroupCommit<Mark>({
    committed: committed("mark"),
    commit: commitMarks,
    lanes: 1,
    maxItems: 500,
    maxBytes: Number.POSITIVE_INFINITY,
    parallelFrom: 1,
    sizeOf: () => 1,
    run
  })

  const settlements = new GroupCommit<Settlement>({
    committed: counting("settle"),
    commit: settling(sql, (settlement, outcome) => tell(settlement.done, outcome)),
    lanes: lanesEach,
    maxItems: 400,
    maxBytes: 4 * 1024 * 1024,
    parallelFrom: 64,
    sizeOf: ({ bytes }) => bytes,
    run
  })

  const stats = (): JournalStats => ({
    requests: acceptances.items + largeAcceptances.items,
    attempts: attempts.items,
    statements: acceptances.commits + largeAcceptances.commits + attempts.commits + marks.commits + settlements.commits,
    waitingRequests: acceptances.pendingItems + largeAcceptances.pendingItems,
    waitingRequestBytes: acceptances.pendingBytes + largeAcceptances.pendingBytes,
    waitingAttempts: attempts.pendingItems
  })
  watchWaiting(stats)

  return Journal.of({
    isFull: () =>
      acceptances.pendingBytes + largeAcceptances.pendingBytes > fullAtBytes || acceptances.pendingItems > fullAtItems,
    isSlow: () => acceptances.isSlow,
    accept: (record, done) =>
      (record.bodySize < largeFromBytes ? acceptances : largeAcceptances).add({ record, since: now(), done }),
    record: (record, done) => attempts.add({ record, done }),
    mark: (eventId, startedAt, done) => marks.add({ eventId, startedAt, done }),
    settle: (settlement) => settlements.add(settlement),
    stats
  })
})
