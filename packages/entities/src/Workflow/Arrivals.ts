import { Effect, Result, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { type GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { storedHeaders } from "@tidegate/model/Message"
import { readJson } from "@tidegate/json/JsonText"
import { type CompiledFilter, compilingFilter } from "@tidegate/rules/Filter"
import { PatternBounds } from "@tidegate/rules/PatternBounds"
import { requestInput, type RequestInput } from "@tidegate/rules/RequestInput"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { makeWakeableWorker, type Next } from "@tidegate/runtime/WakeableWorker"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import type { Database } from "@tidegate/storage/Database"
import { type Arrival, arrivalsDone, dueArrivals } from "@tidegate/storage/workflows/Arrivals"
import {
  type ArrivedRequest,
  arrivedRequests,
  endWait,
  type EventWait,
  forgetSource,
  lookedFor,
  maxLookedAt,
  maxWaits,
  readWait,
  requestsFor,
  waitsAt
} from "@tidegate/storage/workflows/EventWaits"
import { readEndedChild } from "@tidegate/storage/workflows/ChildRuns"
import type { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import { endedAs } from "@tidegate/workflows/kinds/WorkflowStep"
import { shownHeaders } from "@tidegate/verification/PresentedPlaces"
import { matchedAs } from "@tidegate/workflows/kinds/WaitStep"
import { placeOf } from "./PlaceOf.ts"
import { resultIn } from "./RunResult.ts"
import { type Signalling, signalStep } from "./StepSignal.ts"

/** How long (ms) nothing is given after a defect: the same arrivals would lead to it again. */
const afterDefectMs = 60_000

/** Arrivals that are read at once. */
const readAtOnce = 50

/** The signals after which the step does not wait any more, whoever ended it. */
const isOver = ({ code }: GatewayError): boolean =>
  code === "STEP_NOT_WAITING" || code === "NOT_FOUND" || code === "WORKFLOW_NOT_EXECUTABLE"

/** Filters by their text: those of waits that differ in nothing else are compiled once, and none again for each request. */
const filters = new WeighedCache<string, CompiledFilter | null>(maxWaits.team)

interface Needs {
  readonly workflowId: string
  readonly shard: number
  readonly mayGoOn: () => boolean
  readonly signalling: (team_id: string) => Signalling
  /** Commands of the workflow run one after the other. */
  readonly oneAtATime: Semaphore.Semaphore
  /** Ends a run of the workflow whose parent has ended. */
  readonly cancel: (team_id: string, run_id: string) => Effect.Effect<void, GatewayError, Database | RunJournal>
  /** Begins the on-failure run of a run of the workflow that has failed. */
  readonly failed: (team_id: string, run_id: string) => Effect.Effect<void, SqlError.SqlError, Database>
  /** A run has been signalled: it is due. */
  readonly signalled: () => Effect.Effect<void>
}

/** A wait with its compiled filter; null: it matches any request. */
interface Waiting {
  readonly wait: EventWait
  readonly filter: CompiledFilter | null
}

interface Arrived {
  readonly request: ArrivedRequest
  readonly input: RequestInput
}

/**
 * Gives what has arrived to the steps that wait for it. A request ends each wait that it matches, and a wait takes the first request that
 * matches. An arrival is removed after its signals are stored: after a crash it is given again, and steps that have it do not wait any more.
 */
export const makeArrivals = ({
  cancel,
  failed,
  mayGoOn,
  oneAtATime,
  shard,
  signalled,
  signalling,
  workflowId
}: Needs) => {
  const compiled = Effect.fnUntraced(function* (
    team_id: string,
    wait: EventWait
  ): Effect.fn.Return<ReadonlyArray<Waiting>> {
    const { filter: text } = wait
    if (text === null) return [{ wait, filter: null }]
    let filter = filters.get(text)
    if (filter === undefined) {
      const conditions = readJson(text) as { readonly body?: unknown }
      const result = yield* inSlices(compilingFilter(conditions, { patterns: PatternBounds.stored() }))
      // It was compiled before it was stored. If this version refuses it, the step waits until its time is over.
      filter = Result.getOrNull(result)
      if (filter === null) yield* Effect.logError("the filter of a step cannot be compiled", { run_id: wait.run_id })
      filters.set(text, filter, { owner: team_id, bytes: yield* inSlices(weighing(conditions)) })
    }
    return filter === null ? [] : [{ wait, filter }]
  })

  const openOf = Effect.fnUntraced(function* (request: ArrivedRequest): Effect.fn.Return<Arrived> {
    const input = requestInput({ ...request, headers: storedHeaders(request) }, request.body ?? new Uint8Array(0))
    yield* inSlices(input.parsing())
    return { request, input }
  })

  const isFor = ({ ingested_at, source_id }: ArrivedRequest, { wait }: Waiting): boolean =>
    wait.source_id === source_id && ingested_at >= wait.since && ingested_at < wait.expires_at

  /** Those of the waits that the request ends. One filter is evaluated in one turn of the event loop. */
  const matching = ({ input, request }: Arrived, waits: Iterable<Waiting>) =>
    inSlices(
      (function* () {
        const found: Array<Waiting> = []
        for (const waiting of waits) {
          if (!isFor(request, waiting)) continue
          if (waiting.filter === null || waiting.filter.failingTargets(input).length === 0) found.push(waiting)
          yield
        }
        return found
      })()
    )

  const end = Effect.fnUntraced(function* (
    team_id: string,
    { run_id, step_id }: EventWait,
    { input, request }: Arrived
  ): Effect.fn.Return<void, GatewayError | SqlError.SqlError, Database> {
    const signal = matchedAs({
      request_id: request.id,
      method: request.method,
      path: request.path,
      headers: shownHeaders(storedHeaders(request)),
      query: { ...input.query },
      body: input.body(),
      receivedAt: request.ingested_at.getTime()
    })
    const given = signalStep(workflowId, signalling(team_id), { team_id, run_id, step_id }, "event", () => signal)
    const stored = yield* Effect.result(Semaphore.withPermit(oneAtATime, given))
    if (Result.isFailure(stored) && !isOver(stored.failure)) yield* Effect.fail(stored.failure)
    yield* endWait({ run_id, step_id })
    yield* signalled()
  })

  /** Requests that have just been accepted. Returns the ids of those that are done. */
  const takeRequests = Effect.fnUntraced(function* (team_id: string, ids: ReadonlyArray<string>) {
    const requests = yield* arrivedRequests(team_id, ids)
    const sources = [...new Set(requests.map(({ source_id }) => source_id))]
    const waits = new Set(
      (yield* Effect.forEach(yield* waitsAt(workflowId, sources), (wait) => compiled(team_id, wait))).flat()
    )
    const idle = sources.filter((id) => !waits.values().some(({ wait }) => wait.source_id === id))
    for (const request of requests) {
      if (waits.size === 0) break
      const arrived = yield* openOf(request)
      for (const found of yield* matching(arrived, waits)) {
        yield* end(team_id, found.wait, arrived)
        waits.delete(found)
      }
    }
    yield* Effect.forEach(idle, (id) => forgetSource(workflowId, id), { discard: true })
    const last = requests.at(-1)?.id
    // Those that did not fit follow; those that are not there are not read again.
    return requests.length === 0 ? ids : ids.filter((id) => id <= last!)
  })

  /** Requests since the begin of a step that has just been stored as waiting. */
  const look = Effect.fnUntraced(function* (team_id: string, about: NonNullable<ReturnType<typeof lookedFor>>) {
    const wait = yield* readWait(workflowId, about)
    if (wait === null) return
    const waiting = yield* compiled(team_id, wait)
    let after: string | null = null
    for (let seen = 0; seen < maxLookedAt; seen += readAtOnce) {
      const ids: ReadonlyArray<string> = yield* requestsFor(team_id, wait, after, readAtOnce)
      for (let rest = ids; rest.length > 0;) {
        const requests = yield* arrivedRequests(team_id, rest)
        for (const request of requests) {
          const arrived = yield* openOf(request)
          if ((yield* matching(arrived, waiting)).length === 0) continue
          yield* end(team_id, wait, arrived)
          return
        }
        const last = requests.at(-1)?.id
        rest = last === undefined ? [] : rest.filter((id) => id > last)
      }
      if (ids.length < readAtOnce) return
      after = ids.at(-1)!
    }
  })

  /** The end of a run that a step has begun. It may come before the step waits. */
  const giveEnd = Effect.fnUntraced(function* (team_id: string, run_id: string) {
    const child = yield* readEndedChild(workflowId, run_id)
    if (child === null) return
    const { error_code, error_message, outcome, parent_run_id, parts, step_id } = child
    const isFailed = outcome === "failed" || outcome === "cancelled"
    const signal = endedAs({
      run_id,
      workflow_id: child.workflow_id,
      outcome,
      error: isFailed ? { code: error_code ?? "RUN_FAILED", message: error_message ?? `the run is ${outcome}` } : null,
      result: isFailed ? null : yield* inSlices(resultIn(parts))
    })
    const given = signalStep(
      workflowId,
      signalling(team_id),
      { team_id, run_id: parent_run_id, step_id },
      "run",
      () => signal
    )
    const stored = yield* Effect.result(Semaphore.withPermit(oneAtATime, given))
    if (Result.isFailure(stored) && !isOver(stored.failure)) yield* Effect.fail(stored.failure)
    yield* signalled()
  })

  const step = Effect.gen(function* (): Effect.fn.Return<
    Next,
    GatewayError | SqlError.SqlError,
    Database | RunJournal
  > {
    if (!mayGoOn()) return "idle"
    const due = yield* dueArrivals(shard, workflowId, readAtOnce)
    const [first] = due
    if (first === undefined) return "idle"
    const { team_id } = first
    const requests = due.filter(({ about }) => about.startsWith(prefixes.request))
    const done = new Set<Arrival>()
    if (requests.length > 0) {
      const ids = requests.map(({ about }) => about).toSorted()
      const over = new Set(yield* takeRequests(team_id, ids))
      for (const one of requests) if (over.has(one.about)) done.add(one)
    }
    for (const one of due) {
      if (requests.includes(one)) continue
      const [what, id = ""] = one.about.split("/")
      if (what === "run") yield* giveEnd(team_id, id)
      else if (what === "cancel") yield* Semaphore.withPermit(oneAtATime, cancel(team_id, id))
      else if (what === "failed") yield* failed(team_id, id)
      else yield* look(team_id, lookedFor(one.about)!)
      done.add(one)
    }
    yield* arrivalsDone(workflowId, [...done])
    return "again"
  })

  return makeWakeableWorker({
    // A defect must not end the actor, which has runs in hand. What has arrived stays.
    step: Effect.catchDefect(step, (defect) =>
      Effect.as(
        Effect.logError("what arrived for steps could not be given", {
          workflow_id: workflowId,
          place: placeOf(defect)
        }),
        afterDefectMs
      )
    ),
    failed: (error) =>
      Effect.logWarning("what arrived for steps could not be given yet", { workflow_id: workflowId, error })
  })
}
