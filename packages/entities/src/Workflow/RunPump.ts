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

/** Runs that are read at once, with what they were made of and have given: as many bytes as the room says. */
const readAtOnce = 50
/** Runs that are under way, with what they were made of: while there are so many, no more are read. */
const maxInHand = 100
/** Runs that could not be stored: while there are so many, no more are read until somebody wakes this. */
const maxLeft = 500
/** How soon somebody looks again for room that other workflows have taken (ms). */
const roomAfter = 200

/** Of a wait that is over within this (ms) the process is told at its time, by itself. */
const alarmedWithin = 30_000

/** What the status of a workflow says to its runs. */
type Standing = { readonly kind: "going" | "held" } | { readonly kind: "stopped"; readonly error: StepError }

const standingOf = ({ deleted, status }: RunningWorkflow): Standing => {
  if (deleted) return { kind: "stopped", error: { code: "WORKFLOW_DELETED", message: "the workflow was deleted" } }
  if (status === "active") return { kind: "going" }
  if (status === "paused") return { kind: "held" }
  return { kind: "stopped", error: { code: "WORKFLOW_DISABLED", message: `the workflow is ${status}` } }
}

/** Whether there may be more that is due. */
type More = boolean | "once there is room"

const occurrenceOf = (standing: Standing): Occurrence =>
  standing.kind === "stopped"
    ? { type: "stopped", error: standing.error }
    : { type: standing.kind === "held" ? "held" : "released" }

/**
 * Carries on the runs of a workflow that are due, as the workflow stands: while it is paused those in hand come to their next step and no other is
 * read; once it is disabled or deleted all that are left end, due or not. Gives what wakes it. `mayGoOn`: whether this process
 * still has the workflow. `alarm`: told when one of its runs comes due (Unix ms), and wakes it then.
 */
export const runPump = Effect.fnUntraced(function* (
  id: string,
  shard: number,
  plans: ReturnType<typeof plansOf>,
  mayGoOn: () => boolean,
  alarm: (at: number) => void = () => {}
) {
  /** What comes due soon is looked for at its time; the rest the sweep finds a little before. */
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
  /** Runs that could not be stored: they stay due, and are not looked at again before somebody wakes this. */
  const left = new Set<string>()
  /** A run has ended, or come to a wait; or somebody has woken this. */
  const stirred = Latch.makeUnsafe()
  let standing: Standing = { kind: "going" }
  let team: TeamRoom | null = null
  let woken = false
  /** Somebody has said that there are runs: they are looked for once there is room. */
  let hinted = false
  let working = false

  /** Tells the runs in hand how the workflow stands, where that has changed. */
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
          // There may be others, and in the end what a workflow that is deleted leaves behind.
          woken ||= standing.kind === "stopped"
          stirred.openUnsafe()
        })
      )
    )
    yield* Effect.forkChild(going)
  })

  /** Also with nothing in hand: a thousand workflows that are woken at once would each read as much as one may. */
  const hasRoom = (of: TeamRoom): boolean => inHand.size < maxInHand && of.mayRead(rooms.readBytes)

  /** Takes on what is due and not in hand; answers whether there may be more. */
  const takeOn = Effect.gen(function* () {
    // Whose the runs are tells the first look, which reads none.
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

  /** Whether nothing is left to do; then it has ended: a wake finds it at work, or begins it anew, and none falls in between. */
  const isOver = (more: More): boolean => {
    if (more !== false || woken || hinted || inHand.size > 0) return false
    working = false
    return true
  }

  /** While runs are in hand, those that come due go beside them: one that waits for a slow target keeps no other waiting. */
  const work = Effect.gen(function* () {
    let more: More = true
    const isWanted = (): boolean => hinted || more !== false
    // What a workflow that is deleted leaves behind takes no room.
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
      // Until there is room: for a run of its own, or in what others hold.
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
    /** Works until nothing is left to do; at once where somebody is at it already, who then looks again. */
    work: Effect.suspend(() => {
      wake()
      if (working) return Effect.void
      working = true
      return work
    }),
    /** There are runs to begin, for whoever is at work; false: nobody is, or the workflow is another process's by now. */
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
