import { Cause, Clock, Context, Effect, Layer, type Scope } from "effect"
import { JournalSql } from "./Database.ts"
import { type Acceptance, type Accepted, accepting, type CommittedBy } from "./journal/Accepting.ts"
import type { RequestRecord } from "./journal/RequestRecord.ts"
import type { AttemptRecord } from "./journal/AttemptStatement.ts"
import { addingUp } from "./journal/Counting.ts"
import { GroupCommit } from "./journal/GroupCommit.ts"
import { attemptTelemetry, committed, type JournalStats, watchWaiting } from "./journal/JournalTelemetry.ts"
import { type Forwarder, forwarding } from "./journal/Forwarding.ts"
import { type Attempt, type Mark, marking, type Recorded, recording } from "./journal/Recording.ts"
import { committingRouting, type RoutingCommit } from "./journal/RoutingCommits.ts"

export type { Accepted, CommittedBy } from "./journal/Accepting.ts"
export type { Forwarded, Forwarder } from "./journal/Forwarding.ts"
export type {
  AwaitingWorkflow,
  IgnoredEvent,
  RoutingJob,
  RequestRecord,
  RoutedEvent,
  RoutedRun
} from "./journal/RequestRecord.ts"
export type { Recorded } from "./journal/Recording.ts"
export type { RoutingCommit, RoutingOutcome } from "./journal/RoutingCommits.ts"

/**
 * How much may wait for its commit. Ingress refuses more than this (fails closed, because memory is bounded). A source may use as much as it leaves
 * free, so one source alone gets half, and a flood at one source leaves capacity for the others.
 */
const capacity = { items: 20_000, bytes: 128 * 1024 * 1024 }

/** Concurrent commits of requests, and the same number of attempts. */
const commitsEach = 2
/**
 * Requests of this size (bytes) and more are committed one batch after the other, separately from the others: writing ten
 * megabytes takes a tenth of a second, and a sender of one kilobyte must not wait for that.
 */
const largeFromBytes = 512 * 1024
/** A larger request (bytes) is not forwarded: carrying it to another process would cost more than a commit of its own. */
const maxForwardedBytes = 64 * 1024
/** The rows of a commit of requests: a commit that takes long would keep others waiting. */
const maxAcceptRows = 1_000
/**
 * An attempt that nothing waits for gathers others for so long (ms), or until enough of them fill a commit, before it is recorded: its target has
 * the event already, and a commit for each of them would cost more than the delivery itself. Attempts that are not recorded when the process dies
 * are repeated: at most those of this time, and of the commits under way.
 */
const attemptPatienceMs = 50

const bytesOf = (record: RequestRecord): number =>
  record.bodySize + record.headers.length + (record.presented?.length ?? 0) + 512

/** The rows that storing a request writes, about. */
const rowsOf = ({ events, ignored, pending, runs }: RequestRecord): number =>
  1 + events.length + ignored.length + pending.length + runs.length

/**
 * The only writer of the event path, one per process: callers pass records and are called back when they are committed. It
 * commits what has gathered in one statement, so all records that arrived meanwhile share the cost of a commit.
 */
export class Journal extends Context.Service<
  Journal,
  {
    /** Whether a source has as much in the journal as it may: its next request is not accepted. */
    readonly isFull: (sourceId: string) => boolean
    /** Whether requests are stored several times more slowly than they could be: work that can wait should wait. */
    readonly isSlow: () => boolean
    readonly accept: (record: RequestRecord, done: (outcome: Accepted, by: CommittedBy) => void) => void
    /** From now on, requests are forwarded to another process of the host whenever this one allows it. */
    readonly forwardBy: (forwarder: Forwarder) => void
    /**
     * Never gives up: an attempt is recorded once the database answers again. Callers limit how much they pass at once. `isAwaited`:
     * somebody waits for it, so it is recorded without delay.
     */
    readonly record: (record: AttemptRecord, isAwaited: boolean, done: (outcome: Recorded) => void) => void
    /** Stores the start of a rate-limited delivery before it starts. */
    readonly mark: (eventId: string, startedAt: number, done: (marked: boolean) => void) => void
    /** Replaces routing jobs by their results. Callers limit how much they pass at once. */
    readonly commitRouting: (commit: RoutingCommit) => void
    readonly stats: () => JournalStats
  }
>()("@tidegate/storage/Journal") {
  static readonly layer: Layer.Layer<Journal, never, JournalSql> = Layer.effect(
    Journal,
    // The client would make a span for each statement, and nothing reads spans.
    Effect.suspend(() => make.pipe(Effect.withTracerEnabled(false)))
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
  const guarded = (call: () => void): void => {
    try {
      call()
    } catch (cause) {
      run(Effect.logError("a caller of the journal broke down over its answer", Cause.die(cause)))
    }
  }
  const answer = <Outcome>({ done }: { readonly done: (outcome: Outcome) => void }, outcome: Outcome): void =>
    guarded(() => done(outcome))
  const answerRequest = ({ done }: Acceptance, outcome: Accepted, by: CommittedBy = "now"): void =>
    guarded(() => done(outcome, by))

  const commitRequests = accepting(sql, now, answerRequest)
  const counted = yield* addingUp
  /** Counts a commit and its records in the metrics. */
  const counting = (kind: "accept" | "attempt" | "settle") => {
    const measure = committed(kind)
    return (items: number, bytes: number, seconds: number): void => {
      measure(items, bytes, seconds)
      counted(items)
    }
  }

  /** Sources take turns in each of the queues of requests. */
  const ofRequests = {
    maxRows: maxAcceptRows,
    keyOf: ({ record }: Acceptance) => record.sourceId,
    rowsOf: ({ record }: Acceptance) => rowsOf(record),
    sizeOf: ({ record }: Acceptance) => bytesOf(record),
    run
  }
  const acceptances = new GroupCommit<Acceptance>({
    ...ofRequests,
    committed: counting("accept"),
    commit: commitRequests,
    concurrency: commitsEach,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 24
  })
  const largeAcceptances = new GroupCommit<Acceptance>({
    ...ofRequests,
    committed: counting("accept"),
    commit: commitRequests,
    concurrency: 1,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 1
  })
  let forwarder: Forwarder | null = null
  const forwards = new GroupCommit<Acceptance>({
    ...ofRequests,
    committed: () => {},
    commit: forwarding(
      (records) => forwarder!.forward(records),
      answerRequest,
      (item) => acceptances.add(item)
    ),
    concurrency: commitsEach,
    maxBytes: 2 * 1024 * 1024,
    parallelFrom: 24
  })
  /** All requests that are not answered yet are in one of these. */
  const requests = [acceptances, largeAcceptances, forwards]
  const sumOf = <Of>(of: ReadonlyArray<Of>, number: (one: Of) => number): number =>
    of.reduce((sum, one) => sum + number(one), 0)
  const attempts = new GroupCommit<Attempt>({
    committed: counting("attempt"),
    commit: recording(sql, answer, recorded),
    concurrency: commitsEach,
    maxRows: 400,
    maxBytes: 8 * 1024 * 1024,
    parallelFrom: 24,
    keyOf: ({ record }) => record.destinationId,
    patienceMs: attemptPatienceMs,
    sizeOf: (item) => 512 + (item.record.body?.length ?? 0),
    run
  })
  const marks = new GroupCommit<Mark>({
    committed: committed("mark"),
    commit: marking(sql, answer),
    concurrency: 1,
    maxRows: 500,
    maxBytes: Number.POSITIVE_INFINITY,
    parallelFrom: 1,
    sizeOf: () => 1,
    run
  })

  const routings = new GroupCommit<RoutingCommit>({
    committed: counting("settle"),
    commit: committingRouting(sql, answer),
    concurrency: commitsEach,
    maxRows: 400,
    maxBytes: 4 * 1024 * 1024,
    parallelFrom: 64,
    keyOf: ({ connectionId }) => connectionId,
    sizeOf: ({ bytes }) => bytes,
    run
  })

  const stats = (): JournalStats => ({
    requests: acceptances.items + largeAcceptances.items,
    attempts: attempts.items,
    statements: acceptances.commits + largeAcceptances.commits + attempts.commits + marks.commits + routings.commits,
    waitingRequests: sumOf(requests, ({ pendingItems }) => pendingItems),
    waitingRequestBytes: sumOf(requests, ({ pendingBytes }) => pendingBytes),
    waitingAttempts: attempts.pendingItems
  })
  watchWaiting(stats)

  return Journal.of({
    isFull: (sourceId) => {
      const used = requests.map((queue) => queue.loadOf(sourceId))
      const leftItems = capacity.items - sumOf(requests, ({ pendingItems }) => pendingItems)
      const leftBytes = capacity.bytes - sumOf(requests, ({ pendingBytes }) => pendingBytes)
      return leftItems <= sumOf(used, ({ items }) => items) || leftBytes <= sumOf(used, ({ bytes }) => bytes)
    },
    isSlow: () => acceptances.isSlow,
    accept: (record, done) => {
      const queue =
        record.bodySize >= largeFromBytes
          ? largeAcceptances
          : forwarder?.isOn() === true && bytesOf(record) <= maxForwardedBytes
            ? forwards
            : acceptances
      queue.add({ record, since: now(), done })
    },
    forwardBy: (by) => (forwarder = by),
    record: (record, isAwaited, done) => attempts.add({ record, done }, isAwaited),
    mark: (eventId, startedAt, done) => marks.add({ eventId, startedAt, done }),
    commitRouting: (commit) => routings.add(commit),
    stats
  })
})
