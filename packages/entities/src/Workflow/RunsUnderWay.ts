import { Deferred, Effect, type Fiber, Semaphore } from "effect"
import type { Moved } from "@tidegate/storage/workflows/RunJournal"
import { bytesOf, type DueRun, type StoredPart } from "@tidegate/storage/workflows/Runs"
import type { Occurrence } from "@tidegate/workflows/RunState"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Hand, type Manner } from "../InHand.ts"
import { type GivenUpAs, giveUp } from "./GiveUp.ts"
import type { Plan } from "./Plans.ts"
import { CallsAtOnce, Room } from "./RunRoom.ts"
import { carryOn } from "./RunWork.ts"
import { OwnRuns } from "./RunsInHand.ts"
import { Signals } from "./Signals.ts"
import { occurrenceOf, type Standing } from "./Standing.ts"

/** Runs of one workflow that are under way, with their requests. At this number no more are read. */
const maxUnderWay = 100
/** Runs whose changes could not be stored. At this number no more are read until the next wake-up notification. */
const maxUnstored = 500
/** Aborted runs that are remembered. Reading a run takes seconds, and this many are not aborted in that time. */
const maxAborted = 1_000

/** What a run needs to continue, as it was read. */
interface Begun {
  readonly plan: Plan
  readonly parts: ReadonlyArray<StoredPart>
  readonly resources: string | null
  readonly manner: Manner
}

interface Callbacks {
  /** A run waits until then (Unix ms). */
  readonly waits: (until: number, now: number) => void
  /** A run has ended or begun to wait. */
  readonly ended: (runId: string) => void
}

/**
 * The runs of one workflow that are under way in this process. They run beside each other, so a run that waits for a slow target
 * does not delay the others. All of them learn of a change of the workflow's status before their next step.
 */
export const makeRunsUnderWay = Effect.fnUntraced(function* (id: string, { ended, waits }: Callbacks) {
  const rooms = yield* Room
  const own = yield* OwnRuns
  const carry = yield* carryOn
  const hand = yield* Hand
  const slots = Semaphore.makeUnsafe(yield* CallsAtOnce)
  const signals = new Map<string, Signals>()
  /** Of runs that somebody has told something. Completed when the run leaves this process's hand. */
  const leaving = new Map<string, Deferred.Deferred<boolean>>()
  /** Runs whose changes could not be stored. They stay due, and are not read again before the next wake-up notification. */
  const unstored = new Set<string>()
  const fibers = new Map<string, Fiber.Fiber<unknown, unknown>>()
  /** The journal entries of runs when they were aborted: a run that was read before that is not begun. */
  const aborted = new Map<string, number>()
  let standing: Standing = { kind: "active" }

  const noteEnd = (run: Pick<DueRun, "id">, moved: Moved): void => {
    if (moved === "failed" || moved === "refused") unstored.add(run.id)
  }

  return {
    get size(): number {
      return signals.size
    },
    /** How many more may be under way. At 0, no more are to be read. */
    get free(): number {
      return Math.max(0, maxUnderWay - signals.size)
    },
    get hasTooManyUnstored(): boolean {
      return unstored.size >= maxUnstored
    },
    get standing(): Standing {
      return standing
    },
    /** Runs that are not to be read. */
    ids: (): ReadonlyArray<string> => [...signals.keys(), ...unstored],
    retryUnstored: (): void => unstored.clear(),
    /** The workflow's status: if it has changed, the runs under way learn of it. */
    stand: (now: Standing): void => {
      if (now.kind === standing.kind) return
      standing = now
      for (const of of signals.values()) of.offer({ occurrence: occurrenceOf(now), endsEffect: false })
    },
    /** Whether an occurrence from outside has changed the run and is stored; null: the run is not in hand. */
    tell: (runId: string, occurrence: Occurrence): Effect.Effect<boolean | null> => {
      const of = signals.get(runId)
      if (of === undefined) return Effect.succeed(null)
      const left = leaving.get(runId) ?? Deferred.makeUnsafe<boolean>()
      leaving.set(runId, left)
      const told = Effect.callback<boolean>((resume) => {
        of.offer({ occurrence, endsEffect: false, taken: (isStored) => resume(Effect.succeed(isStored)) })
      })
      return Effect.raceFirst(told, Deferred.await(left))
    },
    /** Ends a run that is not to continue. */
    giveUp: (run: Pick<DueRun, "attempts" | "id" | "parts" | "team_id">, error: StepError, options?: GivenUpAs) =>
      Effect.map(giveUp(run, error, options), (moved) => noteEnd(run, moved)),
    abort: (id: string, parts: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        aborted.delete(id)
        aborted.set(id, parts)
        if (aborted.size > maxAborted) aborted.delete(aborted.keys().next().value!)
        const fiber = fibers.get(id)
        return fiber === undefined ? Effect.void : Effect.sync(() => fiber.interruptUnsafe())
      }),
    /**
     * Continues a run in a fiber of its own, as a child of the calling one. An interruption finds the run noted with a fiber that
     * removes the note, or not noted: a run that stays noted is not read again for as long as this actor lives.
     */
    begin: Effect.fnUntraced(function* (run: DueRun, { manner, parts, plan, resources }: Begun) {
      if (run.parts <= (aborted.get(run.id) ?? -1)) {
        yield* hand.done({ kind: "run", id: run.id })
        return
      }
      const heard = new Signals()
      const room = rooms.of(run.team_id)
      let bytes = bytesOf(run)
      signals.set(run.id, heard)
      own.add(run.id)
      room.hold(bytes)
      const work = {
        workflow: plan.workflow,
        label: plan.label,
        about: { id, name: plan.name, version: run.version },
        run,
        parts,
        stop: standing.kind === "stopped" ? standing.error : null,
        slots,
        signals: heard,
        resources,
        waits,
        grew: (by: number) => {
          bytes += by
          room.hold(by)
        }
      }
      const going = hand.within({ kind: "run", id: run.id }, manner, carry(work)).pipe(
        Effect.map((moved) => noteEnd(run, moved)),
        Effect.interruptible,
        Effect.ensuring(
          Effect.sync(() => {
            signals.delete(run.id)
            fibers.delete(run.id)
            const left = leaving.get(run.id)
            leaving.delete(run.id)
            if (left !== undefined) Deferred.doneUnsafe(left, Effect.succeed(false))
            own.delete(run.id)
            room.release(bytes)
            ended(run.id)
          })
        )
      )
      const fiber = yield* Effect.forkChild(going, { uninterruptible: true })
      // It may have ended at once.
      if (signals.get(run.id) === heard) fibers.set(run.id, fiber)
    }, Effect.uninterruptible)
  }
})
