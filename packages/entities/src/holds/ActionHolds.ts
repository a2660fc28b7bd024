import { Clock, Context, Effect, Exit } from "effect"
import type { Answer, Verdict } from "@tidegate/connectors/Connector"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import type { Database } from "@tidegate/storage/Database"
import { storeActionHold } from "@tidegate/storage/workflows/ActionHolds"
import type { Outcome } from "@tidegate/workflows/StepKind"
import type { Call } from "../limits/Calls.ts"
import { type Ending, endingOf } from "../limits/ConcurrencyLimit.ts"
import { makeHolding } from "./Holding.ts"
import { heldUntil } from "./TargetHold.ts"
import { TargetGate } from "./TargetGate.ts"

/**
 * The number of held targets that one process remembers, and the weight of one in bytes. Beyond that, holds are forgotten, first
 * those of the team that has the most. Fails open: a forgotten hold costs one refusal by the target, and calls that already wait
 * for it continue to wait.
 */
const maxHeld = 10_000
const weight = 2_000
/** Delay before a call that was not accepted into the full queue is checked again. */
const pause = "500 millis"

/**
 * The target of an action's call: the id of a saved action. For an action that is written into a step: the provider and the
 * address.
 */
export interface ActionTarget {
  readonly team_id: string
  readonly name: string
}

interface Asked {
  /** The workflow. Calls of one workflow wait in order, and workflows take turns. */
  readonly group: string
  /** When the call began to wait (Unix ms). */
  readonly since: number
}

interface Held {
  readonly gate: TargetGate
  readonly holding: ReturnType<typeof makeHolding>
}

const keyOf = ({ name, team_id }: ActionTarget): string => `${team_id} ${name}`

const heldOf = Effect.fnUntraced(function* ({ name, team_id }: ActionTarget): Effect.fn.Return<Held, never, Database> {
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context<Database>())
  const now = (): number => clock.currentTimeMillisUnsafe()
  const gate = new TargetGate({
    now,
    after: (ms, then) => {
      const timer = fork(Effect.andThen(Effect.sleep(ms), Effect.sync(then)))
      return () => timer.interruptUnsafe()
    }
  })
  const holding = makeHolding({
    what: "an action",
    about: { team_id, target: name },
    now,
    gate,
    store: (until) => storeActionHold(team_id, name, until, now()),
    run: (effect) => void fork(effect)
  })
  return { gate, holding }
})

/**
 * The targets of actions that accept nothing at the moment, as this process knows them: from answers to its own calls, and from
 * holds that other processes have stored. Stored holds are read with SQL that runs anyway: for a saved action with each call, and
 * for a whole team when runs are read.
 */
export class ActionHolds {
  readonly #held = new WeighedCache<string, Held>(maxHeld)

  /** Whether calls need not wait: the target is not on hold, and no call is still waiting from an earlier hold. */
  isOpen(target: ActionTarget): boolean {
    return this.#held.get(keyOf(target)) === undefined
  }

  /** Whether the target is on hold now. */
  isHeld(target: ActionTarget): boolean {
    return this.#held.get(keyOf(target))?.holding.isHeld() ?? false
  }

  /** Records a target's answer. Has to be called before the end of the call is reported. */
  heard(target: ActionTarget, answer: Answer, verdict: Verdict): Effect.Effect<void, never, Database> {
    const said = { ...answer, errorCode: null }
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      heldUntil(said, verdict, now) === null
        ? Effect.void
        : Effect.map(this.#keep(target), ({ holding }) => holding.heard(said, verdict))
    )
  }

  /** Call this before the stored hold is read, and the returned function with the value that was read (Unix ms, 0: no hold). */
  reading(target: ActionTarget): (until: number) => Effect.Effect<void, never, Database> {
    const known = this.#held.get(keyOf(target))
    const read = known?.holding.reading()
    return (until) => {
      if (read !== undefined && this.#held.get(keyOf(target)) === known) {
        read(until)
        this.#forget(target, known!.gate)
        return Effect.void
      }
      return Effect.flatMap(Clock.currentTimeMillis, (now) =>
        until <= now ? Effect.void : Effect.map(this.#keep(target), ({ holding }) => holding.reading()(until))
      )
    }
  }

  /**
   * Makes a call when its target accepts it: none during a hold, then few, and more with each answer. Null: the caller has to
   * start again with current settings, because everything may have changed during the wait.
   */
  within<E, R>(
    target: ActionTarget,
    { group, since }: Asked,
    call: Effect.Effect<Outcome | null, E, R>
  ): Effect.Effect<Outcome | null, E, R> {
    return Effect.suspend(() => {
      const gate = this.#held.get(keyOf(target))?.gate
      if (gate === undefined) return call
      const entered = Effect.callback<Call | "look">((resume) => {
        const waiting = gate.enter({ group, since, ready: (permit) => resume(Effect.succeed(permit)) })
        if (waiting === null) return resume(Effect.as(Effect.sleep(pause), "look"))
        return Effect.sync(() => {
          gate.withdraw(waiting)
          this.#forget(target, gate)
        })
      })
      const leave = (permit: Call) => (exit: Exit.Exit<Outcome | null, E>) =>
        Effect.sync(() => {
          gate.left(permit, howEnded(exit))
          this.#forget(target, gate)
        })
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(entered), (permit) =>
          permit === "look" ? Effect.succeed(null) : Effect.onExit(restore(call), leave(permit))
        )
      )
    })
  }

  #keep(target: ActionTarget): Effect.Effect<Held, never, Database> {
    const key = keyOf(target)
    const known = this.#held.get(key)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(heldOf(target), (held) =>
      this.#held.set(key, held, { owner: target.team_id, bytes: weight + key.length })
    )
  }

  #forget(target: ActionTarget, gate: TargetGate): void {
    const key = keyOf(target)
    if (gate.isOver && this.#held.get(key)?.gate === gate) this.#held.delete(key)
  }
}

/** The meaning of a call's end for the concurrency limit. A failure without a status had no full answer. */
const howEnded = (exit: Exit.Exit<Outcome | null, unknown>): Ending => {
  if (Exit.isFailure(exit) || exit.value === null) return "unsent"
  if (exit.value.kind !== "failed") return "answered"
  const { status = null } = exit.value.error
  return endingOf({ status, errorCode: status === null ? "UNKNOWN" : null })
}

/** One for each process. */
export const Holds = Context.Reference<ActionHolds>("@tidegate/entities/ActionHolds", {
  defaultValue: () => new ActionHolds()
})
