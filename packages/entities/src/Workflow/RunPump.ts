import { Clock, Effect, Latch, Queue, Semaphore } from "effect"
import { clearDeleted } from "@tidegate/storage/RunClearing"
import { RunJournal } from "@tidegate/storage/RunJournal"
import {
  bytesOf,
  type DueRun,
  dueRuns,
  partsOf,
  readRunning,
  type RunningWorkflow,
  type StoredPart
} from "@tidegate/storage/Runs"
import type { Occurrence } from "@tidegate/workflows/Run"
import type { StepError } from "@tidegate/workflows/StepKind"
import { carriedTo } from "./Carried.ts"
import type { Plan, plansOf } from "./Plans.ts"
import { abandoned } from "./RunRecord.ts"
import { Room } from "./RunRoom.ts"
import { carryOn, type Told } from "./RunWork.ts"
import { OwnRuns } from "./RunsInHand.ts"
import { placeOf } from "./PlaceOf.ts"

/** Runs that are read at once, with what they were made of and have given. */
const readAtOnce = { limit: 50, bytes: 16 * 1024 * 1024 }
/** Runs that are under way, with what they were made of: while there are so many, no more are read. */
const mostInHand = 100
/** What the runs of one workflow have outside of the process at once. */
const slotsEach = 10
/** How soon somebody looks again for room that other workflows have taken (ms). */
const roomAfter = 200

/** What the status of a workflow says to its runs. */
type Standing = { readonly kind: "going" | "held" } | { readonly kind: "stopped"; readonly error: StepError }

const standingOf = ({ deleted, status }: RunningWorkflow): Standing => {
  if (deleted) return { kind: "stopped", error: { code: "WORKFLOW_DELETED", message: "the workflow was deleted" } }
  if (status === "active") return { kind: "going" }
  if (status === "paused") return { kind: "held" }
  return { kind: "stopped", error: { code: "WORKFLOW_DISABLED", message: `the workflow is ${status}` } }
}

const occurrenceOf = (standing: Standing): Occurrence =>
  standing.kind === "stopped"
    ? { type: "stopped", error: standing.error }
    : { type: standing.kind === "held" ? "held" : "released" }

/**
 * Carries on the runs of a workflow that are due, as the workflow stands: while it is paused those in hand come to their next step and no other is
 * read; once it is disabled or deleted all that are left end, due or not. Answers once nothing is left to do. `mayGoOn`: whether this process
 * still has the workflow.
 */
export const runPump = Effect.fnUntraced(function* (
  id: string,
  shard: number,
  plans: ReturnType<typeof plansOf>,
  mayGoOn: () => boolean
) {
  const journal = yield* RunJournal
  const rooms = yield* Room
  const own = yield* OwnRuns
  const slots = Semaphore.makeUnsafe(slotsEach)
  const inHand = new Map<string, Queue.Queue<Told>>()
  /** A run has ended, or come to a wait; or somebody has woken this. */
  const stirred = Latch.makeUnsafe()
  let standing: Standing = { kind: "going" }
  let woken = false

  /** Tells the runs in hand how the workflow stands, where that has changed. */
  const stand = (now: Standing): void => {
    if (now.kind === standing.kind) return
    standing = now
    for (const told of inHand.values()) Queue.offerUnsafe(told, { occurrence: occurrenceOf(now), endsEffect: false })
  }

  /** Ends a run that cannot go on as it is stored: it would be taken on again and again, and keep others from their turn. */
  const giveUp = Effect.fnUntraced(function* (run: DueRun) {
    const error = { code: "INTERNAL_ERROR", message: "the run cannot be carried on" }
    yield* journal.move(abandoned(run, error, yield* Clock.currentTimeMillis))
  })

  const carry = Effect.fnUntraced(function* (
    run: DueRun,
    plan: Plan,
    parts: ReadonlyArray<StoredPart>,
    resources: string | null
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
      grew: (by: number) => {
        bytes += by
        room.hold(by)
      }
    }
    const going = carryOn(work).pipe(
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("a run of a workflow broke down", { run_id: run.id, place: placeOf(defect) }),
          giveUp(run)
        )
      ),
      Effect.ensuring(
        Effect.sync(() => {
          inHand.delete(run.id)
          own.delete(run.id)
          room.letGo(bytes)
          // There may be others, and in the end what a workflow that is deleted leaves behind.
          woken ||= standing.kind === "stopped"
          stirred.openUnsafe()
        })
      )
    )
    yield* Effect.forkChild(going)
  })

  /** Takes on what is due and not in hand; answers whether there may be more. */
  const takeOn = Effect.gen(function* () {
    const running = yield* readRunning(id)
    if (running === null || !mayGoOn()) return false
    stand(standingOf(running))
    if (standing.kind === "held") return false
    const room = rooms.of(running.team_id)
    if (running.deleted) return inHand.size === 0 && (yield* clearDeleted(id))
    // Also with nothing in hand: a thousand workflows that are woken at once would each read as much as one may.
    if (inHand.size >= mostInHand || !room.mayRead(readAtOnce.bytes)) return true
    const now = yield* Clock.currentTimeMillis
    const until = standing.kind === "stopped" ? Number.POSITIVE_INFINITY : now
    const runs = yield* dueRuns(shard, id, until, { ...readAtOnce, inHand: [...inHand.keys()] })
    const begun = runs.filter(({ parts }) => parts > 0)
    const stored = yield* partsOf(
      begun.map(({ id }) => id),
      new Map(begun.map((run) => [run.id, carriedTo(run)]))
    )
    const parts = Map.groupBy(stored, ({ run_id }) => run_id)
    const planned = yield* plans.plannedFor(runs)
    for (const [i, run] of runs.entries()) {
      const { plan, resources } = planned[i]!
      if (plan === null) {
        const unreadable = { code: "INTERNAL_ERROR", message: "the version that the run goes by cannot be read" }
        yield* journal.move(abandoned(run, standing.kind === "stopped" ? standing.error : unreadable, now))
        continue
      }
      yield* carry(run, plan, parts.get(run.id) ?? [], resources)
    }
    return runs.length > 0 && (runs.length < runs[0]!.found || runs.length === readAtOnce.limit)
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

  /** While runs are in hand, those that come due go beside them: one that waits for a slow target keeps no other waiting. */
  const work = Effect.gen(function* () {
    let more = true
    while (more || woken || inHand.size > 0) {
      stirred.closeUnsafe()
      const before = inHand.size
      if (more || woken) {
        woken = false
        more = yield* takeOn
        if (!more || inHand.size > before) continue
      }
      // Until there is room: for a run of its own, or in what others hold.
      yield* more && before < mostInHand ? Effect.race(stirred.await, Effect.sleep(roomAfter)) : stirred.await
    }
  })

  return {
    work,
    wake: () => {
      woken = true
      stirred.openUnsafe()
    }
  }
})
