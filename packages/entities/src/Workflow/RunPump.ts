import { Clock, Effect, Latch, Queue, Semaphore } from "effect"
import { clearDeleted } from "@tidegate/storage/workflows/RunClearing"
import type { Moved } from "@tidegate/storage/workflows/RunJournal"
import {
  bytesOf,
  type DueRun,
  dueRuns,
  partsOf,
  type RunningWorkflow,
  type StoredPart
} from "@tidegate/storage/workflows/Runs"
import type { Occurrence } from "@tidegate/workflows/Run"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Holds } from "../holds/ActionHolds.ts"
import { Hand, type Manner, setAside } from "../InHand.ts"
import { carriedTo } from "./Carried.ts"
import { giveUp } from "./GiveUp.ts"
import type { Plan, plansOf } from "./Plans.ts"
import { Pace } from "./RunPace.ts"
import { CallsAtOnce, Room, type TeamRoom } from "./RunRoom.ts"
import { carryOn, type Told } from "./RunWork.ts"
import { OwnRuns } from "./RunsInHand.ts"

/** Runs that are read in one statement, with their requests and outputs; their bytes are limited by `RunRoom`. */
const readAtOnce = 50
/** Runs of one workflow that are under way, with their requests. At this number no more are read. */
const maxInHand = 100
/** Runs whose changes could not be stored. At this number no more are read until the next wake-up notification. */
const maxLeft = 500
/** How soon (ms) to check again for memory that other workflows held. */
const roomAfter = 200

/** A wait that ends within this time (ms) has a timer in the process. The poller finds the others. */
const alarmedWithin = 30_000

/** What the workflow's status means for its runs. */
type Standing = { readonly kind: "going" | "held" } | { readonly kind: "stopped"; readonly error: StepError }

const standingOf = ({ deleted, status }: RunningWorkflow): Standing => {
  if (deleted) return { kind: "stopped", error: { code: "WORKFLOW_DELETED", message: "the workflow was deleted" } }
  if (status === "active") return { kind: "going" }
  if (status === "paused") return { kind: "held" }
  return { kind: "stopped", error: { code: "WORKFLOW_DISABLED", message: `the workflow is ${status}` } }
}

/** Whether more runs may be due. "once there is room": they cannot be read now. */
type More = boolean | "once there is room"

const occurrenceOf = (standing: Standing): Occurrence =>
  standing.kind === "stopped"
    ? { type: "stopped", error: standing.error }
    : { type: standing.kind === "held" ? "held" : "released" }

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
  const rooms = yield* Room
  const pace = yield* Pace
  const own = yield* OwnRuns
  const hand = yield* Hand
  const holds = yield* Holds
  const slots = Semaphore.makeUnsafe(yield* CallsAtOnce)
  const inHand = new Map<string, Queue.Queue<Told>>()
  /** Runs whose changes could not be stored. They stay due, and are not read again before the next wake-up notification. */
  const left = new Set<string>()
  /** Open when a run has ended or begun to wait, or when a wake-up notification has arrived. */
  const stirred = Latch.makeUnsafe()
  let standing: Standing = { kind: "going" }
  let team: TeamRoom | null = null
  let woken = false
  /** There are new runs: they are read as soon as there is capacity. */
  let hinted = false
  let working = false

  /** Tells the runs in hand about the workflow's status, if it has changed. */
  const stand = (now: Standing): void => {
    if (now.kind === standing.kind) return
    standing = now
    for (const told of inHand.values()) Queue.offerUnsafe(told, { occurrence: occurrenceOf(now), endsEffect: false })
  }

  const ended = (run: DueRun, moved: Moved): void => {
    if (moved === "failed" || moved === "refused") left.add(run.id)
  }

  const carry = Effect.fnUntraced(function* (
    run: DueRun,
    plan: Plan,
    parts: ReadonlyArray<StoredPart>,
    resources: string | null,
    manner: Manner
  ) {
    const told = yield* Queue.unbounded<Told>()
    const room = rooms.of(run.team_id)
    let bytes = bytesOf(run)
    inHand.set(run.id, told)
    own.add(run.id)
    room.hold(bytes)
    const work = {
      workflow: plan.workflow,
      about: { id, name: plan.name, version: run.version },
      run,
      parts,
      stop: standing.kind === "stopped" ? standing.error : null,
      slots,
      told,
      resources,
      waits: (until: number, now: number) => comesDue(until, now),
      grew: (by: number) => {
        bytes += by
        room.hold(by)
      }
    }
    const going = hand.within({ kind: "run", id: run.id }, manner, carryOn(work)).pipe(
      Effect.map((moved) => ended(run, moved)),
      Effect.ensuring(
        Effect.sync(() => {
          inHand.delete(run.id)
          own.delete(run.id)
          room.release(bytes)
          // There may be more runs, and at the end the rows of a deleted workflow have to be removed.
          woken ||= standing.kind === "stopped"
          stirred.openUnsafe()
        })
      )
    )
    yield* Effect.forkChild(going)
  })

  /** Checked also with no run in hand: otherwise a thousand workflows that wake at once would each read as much as one may. */
  const hasRoom = (of: TeamRoom): boolean => inHand.size < maxInHand && of.mayRead(rooms.readBytes)

  /** Starts due runs that are not in hand. Returns whether there may be more. */
  const takeOn = Effect.gen(function* () {
    // The first query reads no runs: it finds the team, whose memory limit is needed before runs are read.
    const limit = team !== null && hasRoom(team) ? pace.take(id, readAtOnce) : 0
    const mayRead = limit > 0
    const limits = {
      limit,
      bytes: rooms.readBytes,
      inHand: [...inHand.keys(), ...left]
    }
    const now = yield* Clock.currentTimeMillis
    const due = yield* dueRuns(shard, id, now, limits)
    pace.giveBack(id, limit - (due?.runs.length ?? 0))
    if (due === null || !mayGoOn()) return false
    const { held, running, runs } = due
    yield* Effect.forEach(held, ([name, until]) => holds.reading({ team_id: running.team_id, name })(until), {
      discard: true
    })
    team = rooms.of(running.team_id)
    stand(standingOf(running))
    if (standing.kind === "held") return false
    comesDue(due.next, now)
    if (running.deleted) return inHand.size === 0 && (yield* clearDeleted(id))
    if (!mayRead) return "once there is room"
    if (left.size >= maxLeft) return false
    const begun = runs.filter(({ parts }) => parts > 0)
    const stored = yield* partsOf(
      begun.map(({ id }) => id),
      new Map(begun.map((run) => [run.id, carriedTo(run)]))
    )
    const parts = Map.groupBy(stored, ({ run_id }) => run_id)
    const planned = yield* plans.plannedFor(runs)
    const works = runs.map((run) => ({ kind: "run" as const, id: run.id, team_id: run.team_id, bytes: bytesOf(run) }))
    const mannerOf = yield* hand.take(works)
    for (const [i, run] of runs.entries()) {
      const { plan, resources } = planned[i]!
      if (plan === null) {
        const unreadable = { code: "INTERNAL_ERROR", message: "the version that the run goes by cannot be read" }
        ended(run, yield* giveUp(run, standing.kind === "stopped" ? standing.error : unreadable))
        continue
      }
      const manner = mannerOf(works[i]!)
      if (manner === "not again") {
        ended(run, yield* giveUp(run, setAside, { fromFirst: true }))
        yield* hand.done(works[i]!)
        continue
      }
      yield* carry(run, plan, parts.get(run.id) ?? [], resources, manner)
    }
    return runs.length > 0 && (runs.length < runs[0]!.found || runs.length === limit)
  }).pipe(
    rooms.reading,
    Effect.catch((error) =>
      Effect.as(
        Effect.logWarning("a workflow's runs could not be read; the sweep comes back to them", {
          workflow_id: id,
          error
        }),
        false
      )
    )
  )

  /**
   * Whether no work is left; then the work has ended. This check and the change of `working` happen in one step, so a wake-up
   * notification is never lost between them.
   */
  const isOver = (more: More): boolean => {
    if (more !== false || woken || hinted || inHand.size > 0) return false
    working = false
    return true
  }

  /** Due runs are started beside those in hand, so a run that waits for a slow target does not delay the others. */
  const work = Effect.gen(function* () {
    let more: More = true
    const isWanted = (): boolean => hinted || more !== false
    // Ending the remaining runs of a deleted or disabled workflow needs no capacity.
    const mayTakeOn = (of: TeamRoom): boolean => hasRoom(of) && pace.waitMs(id) === 0
    const mayLook = (): boolean => team === null || mayTakeOn(team) || (more === true && standing.kind === "stopped")
    while (!isOver(more)) {
      stirred.closeUnsafe()
      const before = inHand.size
      if (woken || (isWanted() && mayLook())) {
        woken = false
        hinted = false
        more = yield* takeOn
        if (more !== true || inHand.size > before) continue
      }
      // Waits until there is capacity: until one of its own runs ends, or until other workflows release some.
      yield* isWanted() && before < maxInHand
        ? Effect.race(stirred.await, Effect.sleep(Math.min(roomAfter, pace.waitMs(id) || roomAfter)))
        : stirred.await
    }
  }).pipe(
    Effect.onError(() =>
      Effect.sync(() => {
        working = false
      })
    )
  )

  const wake = (): void => {
    left.clear()
    woken = true
    stirred.openUnsafe()
  }

  return {
    /** Works until no work is left. If it is already working, this returns at once, and the working fiber reads again. */
    work: Effect.suspend(() => {
      wake()
      if (working) return Effect.void
      working = true
      return work
    }),
    /** Tells the working fiber that there are new runs. False: it is not working, or another process owns the workflow now. */
    rouse: (): boolean => {
      const isHeard = working && mayGoOn()
      if (isHeard) {
        left.clear()
        hinted = true
        stirred.openUnsafe()
      }
      return isHeard
    }
  }
})
