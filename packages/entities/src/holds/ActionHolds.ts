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
 * Targets that one process keeps in mind, and what one weighs. Beyond that holds are forgotten, first those of whoever has the most. Fails open: a hold
 * that is forgotten costs one refusal, and calls that wait for it wait on.
 */
const most = 10_000
const weight = 2_000
/** Before a call that found no room to wait is looked at again. */
const pause = "500 millis"

/** What actions call: a saved action by its id, and of an action that is written into a step the provider and where it is called. */
export interface ActionTarget {
  readonly team_id: string
  readonly name: string
}

interface Asked {
  /** The workflow: calls of one wait behind each other, and workflows take turns. */
  readonly line: string
  /** Since when the call waits (Unix ms). */
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
 * The targets of actions that take nothing for now, as this process knows of them: by what they have answered here, and by what other processes have
 * stored. That is read where SQL is read anyway: of a saved action with each call, and of a whole team with the runs that are taken on.
 */
export class ActionHolds {
  readonly #held = new WeighedCache<string, Held>(most)

  /** Whether calls go without waiting: the target is not held, and none of those waits any more that were. */
  isOpen(target: ActionTarget): boolean {
    return this.#held.get(keyOf(target)) === undefined
  }

  /** Whether the target takes nothing at the moment. */
  isHeld(target: ActionTarget): boolean {
    return this.#held.get(keyOf(target))?.holding.isHeld() ?? false
  }

  /** Takes in what a target has answered, before the end of the call is told. */
  heard(target: ActionTarget, answer: Answer, verdict: Verdict): Effect.Effect<void, never, Database> {
    const said = { ...answer, errorCode: null }
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      heldUntil(said, verdict, now) === null
        ? Effect.void
        : Effect.map(this.#keep(target), ({ holding }) => holding.heard(said, verdict))
    )
  }

  /** To be called before what is stored is read, and then with what it says (Unix ms, 0: nothing). */
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
   * Makes a call when its target takes it: while the target is held none, then few, and more as it answers. Null: the call is to be looked at again, as
   * everything may have changed while it waited.
   */
  within<E, R>(
    target: ActionTarget,
    { line, since }: Asked,
    call: Effect.Effect<Outcome | null, E, R>
  ): Effect.Effect<Outcome | null, E, R> {
    return Effect.suspend(() => {
      const gate = this.#held.get(keyOf(target))?.gate
      if (gate === undefined) return call
      const entered = Effect.callback<Call | "look">((resume) => {
        const waiting = gate.enter({ line, since, told: (place) => resume(Effect.succeed(place)) })
        if (waiting === null) return resume(Effect.as(Effect.sleep(pause), "look"))
        return Effect.sync(() => {
          gate.withdraw(waiting)
          this.#forget(target, gate)
        })
      })
      const leave = (place: Call) => (exit: Exit.Exit<Outcome | null, E>) =>
        Effect.sync(() => {
          gate.left(place, howEnded(exit))
          this.#forget(target, gate)
        })
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(entered), (place) =>
          place === "look" ? Effect.succeed(null) : Effect.onExit(restore(call), leave(place))
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

/** What the end of a call tells of how many its target takes; what has failed without a status had no full answer. */
const howEnded = (exit: Exit.Exit<Outcome | null, unknown>): Ending => {
  if (Exit.isFailure(exit) || exit.value === null) return "unsent"
  if (exit.value.kind !== "failed") return "answered"
  const { status = null } = exit.value.error
  return endingOf({ status, errorCode: status === null ? "UNKNOWN" : null })
}

/** One for a process. */
export const Holds = Context.Reference<ActionHolds>("@tidegate/entities/ActionHolds", {
  defaultValue: () => new ActionHolds()
})
