import { Clock, Effect } from "effect"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { makeWakeableWorker, type Next } from "@tidegate/runtime/WakeableWorker"
import { batchInputs } from "@tidegate/storage/workflows/BatchInputs"
import { clearDeleted } from "@tidegate/storage/workflows/RunClearing"
import { bytesOf, type DueRun, dueRuns, partsOf } from "@tidegate/storage/workflows/Runs"
import { payloadGone } from "@tidegate/storage/Tables"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Holds } from "../holds/ActionHolds.ts"
import { Hand, setAside } from "../InHand.ts"
import { batchedRuns } from "./BatchedRuns.ts"
import { carriedTo } from "./Carried.ts"
import { debouncedRuns, tooManyKeys } from "./DebouncedRuns.ts"
import type { GivenUpAs } from "./GiveUp.ts"
import type { plansOf } from "./Plans.ts"
import { ReadTiming } from "./ReadTiming.ts"
import { QueueStart } from "./QueueStart.ts"
import { Pace } from "./RunPace.ts"
import { repeatedRuns } from "./RepeatedRuns.ts"
import { Room, type TeamRoom } from "./RunRoom.ts"
import { OwnRuns } from "./RunsInHand.ts"
import { makeRunsUnderWay } from "./RunsUnderWay.ts"
import { makeRunTurns, tooManyWaiting } from "./RunTurns.ts"
import { standingOf } from "./Standing.ts"

/** Runs that are read in one statement, with their requests and outputs; their bytes are limited by `RunRoom`. */
const readAtOnce = 50
/** How soon (ms) to check again for memory that other workflows held. */
const roomAfter = 200

/** A wait that ends within this time (ms) has a timer in the process. The poller finds the others. */
const alarmedWithin = 30_000

/** Whether more runs may be due. "once there is room": they cannot be read now. */
type More = boolean | "once there is room"

/** Why a run ends before its first step. */
type Refusals = ReadonlyMap<string, readonly [error: StepError, as?: GivenUpAs]>

const duplicate = { status: "succeeded", outcome: "duplicate" } as const
const superseded = { status: "succeeded", outcome: "superseded" } as const
const batched = { status: "succeeded", outcome: "batched" } as const

const unreadable = { code: "INTERNAL_ERROR", message: "the version that the run goes by cannot be read" }

/** Those of these runs that carry out a batch have it. A batch that retention has removed is like a request that it has removed. */
const withBatches = Effect.fnUntraced(function* (due: ReadonlyArray<DueRun>, refusals: Refusals) {
  // A run that has carried its batch into a wait needs nothing more.
  const isWith = ({ batch_id, carried, id }: DueRun): boolean =>
    batch_id !== null && carried === null && !refusals.has(id)
  const ids = due.flatMap((run) => (isWith(run) ? [run.batch_id!] : []))
  if (ids.length === 0) return due
  const inputs = yield* batchInputs(due[0]!.team_id, [...new Set(ids)])
  return due.map((run): DueRun => {
    if (!isWith(run)) return run
    const batch = inputs.get(run.batch_id!)
    return batch === undefined ? { ...run, headers: payloadGone } : { ...run, batch }
  })
})

/**
 * Carries on the due runs of a workflow according to its status. While it is paused, runs in hand stop before their next step,
 * and no others are read. When it is disabled or deleted, all remaining runs end, due or not. Returns the functions that wake it.
 * `mayGoOn`: whether this process still owns the workflow. `alarm`: called with the time (Unix ms) at which one of its runs is
 * due; it has to wake the workflow then.
 */
export const runPump = Effect.fnUntraced(function* (
  id: string,
  shard: number,
  plans: ReturnType<typeof plansOf>,
  mayGoOn: () => boolean,
  alarm: (at: number) => void = () => {}
) {
  /** Sets a timer for a run that is due soon. The poller finds the others shortly before they are due. */
  const comesDue = (at: number | null, now: number): void => {
    if (at !== null && at <= now + alarmedWithin) alarm(at)
  }
  const clock = yield* Clock.Clock
  const own = yield* OwnRuns
  /** Runs wait to begin until then (Unix ms). The poller may have looked for such runs already. */
  const waits = (at: number): void => {
    if (at === Infinity) return
    own.waits(at)
    comesDue(at, clock.currentTimeMillisUnsafe())
  }
  const rooms = yield* Room
  const pace = yield* Pace
  const hand = yield* Hand
  const holds = yield* Holds
  const runs = yield* makeRunsUnderWay(id, {
    waits: comesDue,
    ended: (runId) => {
      turns.left(runId)
      // There may be more runs, others may have their turn, and at the end the rows of a deleted workflow have to be removed.
      isWoken ||= runs.standing.kind === "stopped" || turns.isLimited
      if (isWoken || !isGathering || timing.isWhole(runs.free)) worker.wake()
    }
  })
  const turns = makeRunTurns(id, {
    changed: () => {
      isWoken = true
      worker.wake()
    },
    waits: (at) => waits(at)
  })
  let team: TeamRoom | null = null
  let more: More = false
  /** Due runs are to be read now. */
  let isWoken = false
  /** There are new runs: they are read as soon as there is capacity. */
  let hasNew = false
  const timing = new ReadTiming(readAtOnce)
  const start = new QueueStart()
  /** The next read waits for more places. */
  let isGathering = false

  /** Checked also with no run in hand: otherwise a thousand workflows that wake at once would each read as much as one may. */
  const hasRoom = (of: TeamRoom): boolean => runs.free > 0 && of.mayRead(rooms.readBytes)

  const begin = Effect.fnUntraced(function* (read: ReadonlyArray<DueRun>, refusals: Refusals) {
    const due = yield* withBatches(read, refusals)
    const begun = due.filter(({ parts }) => parts > 0)
    const stored = yield* partsOf(
      begun.map(({ id }) => id),
      new Map(begun.map((run) => [run.id, carriedTo(run)]))
    )
    const parts = Map.groupBy(stored, ({ run_id }) => run_id)
    const planned = yield* plans.plannedFor(due)
    const works = due.map((run) => ({ kind: "run" as const, id: run.id, team_id: run.team_id, bytes: bytesOf(run) }))
    const mannerOf = yield* hand.take(works)
    for (const [i, run] of due.entries()) {
      const { plan, resources } = planned[i]!
      if (plan === null) {
        const { standing } = runs
        yield* runs.giveUp(run, standing.kind === "stopped" ? standing.error : unreadable)
        turns.left(run.id)
        continue
      }
      const refusal = refusals.get(run.id)
      if (refusal !== undefined) {
        yield* runs.giveUp(run, ...refusal)
        turns.left(run.id)
        yield* hand.done(works[i]!)
        continue
      }
      const manner = mannerOf(works[i]!)
      if (manner === "set aside") {
        yield* runs.giveUp(run, setAside, { fromFirst: true })
        turns.left(run.id)
        yield* hand.done(works[i]!)
        continue
      }
      yield* runs.begin(run, { plan, parts: parts.get(run.id) ?? [], resources, manner })
    }
  })

  /** Of due runs of an active workflow, those that begin now, and those that end before their first step. */
  const admit = Effect.fnUntraced(function* (due: ReadonlyArray<DueRun>, triggers: WorkflowTriggers | null) {
    const refusals = new Map<string, readonly [error: StepError, as?: GivenUpAs]>()
    for (const [run, first] of yield* repeatedRuns(id, due, triggers?.deduplicate ?? null)) {
      refusals.set(run, [{ code: "DUPLICATE_RUN", message: `repeats ${first}` }, { as: duplicate }])
    }
    const debounced = yield* debouncedRuns(
      id,
      due.filter((run) => !refusals.has(run.id)),
      triggers?.debounce ?? null
    )
    const here = new Set(due.map((run) => run.id))
    for (const [run, later] of debounced.superseded) {
      const refusal = [{ code: "SUPERSEDED_RUN", message: `${later} took its place` }, { as: superseded }] as const
      if (here.has(run)) refusals.set(run, refusal)
      // It waited, so it has no journal entries: otherwise it has begun meanwhile, and stays as it is.
      else yield* runs.giveUp({ id: run, team_id: due[0]!.team_id, parts: 0, attempts: 1 }, ...refusal)
    }
    const gathered = yield* batchedRuns(id, debounced.begin, triggers?.batch ?? null)
    for (const [run, first] of gathered.batched) {
      refusals.set(run, [{ code: "BATCHED_RUN", message: `${first} carries it out` }, { as: batched }])
    }
    for (const run of [...debounced.refused, ...gathered.refused]) refusals.set(run, [tooManyKeys])
    waits(Math.min(debounced.nextAt, gathered.nextAt))
    const admitted = yield* turns.admit(gathered.begin)
    for (const run of admitted.refused) refusals.set(run, [tooManyWaiting])
    const begins = new Map(admitted.begin.map((run) => [run.id, run]))
    const begin = due.flatMap((run) => begins.get(run.id) ?? (refusals.has(run.id) ? [run] : []))
    return { begin, refusals, more: admitted.more || gathered.others }
  })

  /** Starts due runs that are not in hand. Returns whether there may be more. */
  const takeOn = Effect.gen(function* () {
    // The first query reads no runs: it finds the team, whose memory limit is needed before runs are read.
    const limit = team !== null && hasRoom(team) ? pace.take(id, readAtOnce) : 0
    const mayRead = limit > 0
    yield* turns.give
    const now = yield* Clock.currentTimeMillis
    const from = start.next(now)
    const due = yield* dueRuns(shard, id, now, { limit, bytes: rooms.readBytes, inHand: runs.ids(), from })
    pace.giveBack(id, limit - (due?.runs.length ?? 0))
    if (due === null || !mayGoOn()) return false
    const { held, running } = due
    yield* Effect.forEach(held, ([name, until]) => holds.reading({ team_id: running.team_id, name })(until), {
      discard: true
    })
    team = rooms.of(running.team_id)
    runs.stand(standingOf(running))
    if (runs.standing.kind === "held") return false
    const { triggers = null } = running
    yield* turns.apply(running.team_id, runs.standing.kind === "active" ? triggers : null)
    comesDue(due.next, now)
    if (running.deleted) return runs.size === 0 && (yield* clearDeleted(id))
    if (!mayRead) return "once there is room"
    if (runs.hasTooManyUnstored) return false
    const last = due.runs.at(-1)
    if (last === undefined) {
      // What it was woken for may be due before the place where this read began. While others are under way, the poller finds it.
      hasNew ||= from > 0 && runs.size === 0
      start.reset()
      return false
    }
    const admitted =
      runs.standing.kind === "active"
        ? yield* admit(due.runs, triggers)
        : { begin: due.runs, refusals: new Map(), more: false }
    yield* begin(admitted.begin, admitted.refusals)
    // A run that neither begins nor ends may stay due as it is.
    if (admitted.begin.length < due.runs.length) start.reset()
    else start.read(last.due_at.getTime())
    if (admitted.more) return true
    return due.runs.length < last.found || due.runs.length === limit
  }).pipe(
    rooms.reading,
    Effect.tapError(() =>
      Effect.sync(() => {
        isWoken = true
      })
    )
  )

  const isWanted = (): boolean => hasNew || more !== false
  // Ending the remaining runs of a deleted or disabled workflow needs no capacity.
  const mayTakeOn = (of: TeamRoom): boolean => hasRoom(of) && pace.waitMs(id) === 0
  const mayRead = (): boolean => team === null || mayTakeOn(team) || (more === true && runs.standing.kind === "stopped")

  /** Reads due runs if they may be read now. Runs that are under way continue beside this. */
  const step = Effect.gen(function* (): Effect.fn.Return<
    Next,
    Effect.Error<typeof takeOn>,
    Effect.Services<typeof takeOn>
  > {
    if (!isWanted() && !isWoken && runs.size === 0) return "idle"
    const before = runs.size
    const wasFull = runs.free === 0
    isGathering = false
    if (!isWoken && isWanted() && !wasFull) {
      const wait = timing.waitMs(runs.free, clock.currentTimeMillisUnsafe())
      isGathering = wait > 0
      if (isGathering) return wait
    }
    if (isWoken || (isWanted() && mayRead())) {
      if (isWoken) start.reset()
      isWoken = false
      hasNew = false
      timing.reads(clock.currentTimeMillisUnsafe())
      more = yield* takeOn
      if (more !== true || runs.size > before) return "again"
    }
    // Waits until there is capacity: until one of its own runs ends, or until other workflows release some.
    return isWanted() && !wasFull ? Math.min(roomAfter, pace.waitMs(id) || roomAfter) : Number.POSITIVE_INFINITY
  })

  const worker = makeWakeableWorker({
    step,
    failed: (error) => Effect.logWarning("a workflow's runs could not be read yet", { workflow_id: id, error })
  })

  return {
    /** A run was ended from outside. */
    left: (runId: string): void => {
      turns.left(runId)
      isWoken ||= turns.isLimited
      worker.wake()
    },
    /** Interrupts a run that is in hand, with its calls. With this number of journal entries, or fewer, it is not begun again. */
    abort: runs.abort,
    /** Works until no work is left. If it is already working, this returns at once, and the working fiber reads again. */
    work: Effect.suspend(() => {
      runs.retryUnstored()
      isWoken = true
      return worker.work
    }),
    /** As in `RunsUnderWay`. */
    tell: runs.tell,
    /** There are new runs. False: no fiber works, or another process owns the workflow now. */
    notify: (): boolean => {
      if (!worker.isWorking() || !mayGoOn()) return false
      runs.retryUnstored()
      hasNew = true
      return worker.wake()
    }
  }
})
