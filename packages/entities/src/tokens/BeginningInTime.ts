import { Deferred, Effect, Exit, type Fiber } from "effect"

/** Called by the work when it no longer waits. */
interface Beginning {
  /** Whether somebody still waits for it. */
  readonly mayBegin: () => boolean
  /** The same; if so, it is waited for to its end from here on. */
  readonly begin: () => boolean
}

/**
 * Runs work that waits for others before it does what cannot be repeated. Returns "busy" when it has not begun within `ms`; then
 * it does not begin any more. `fork`: starts the work in a fiber of its own, which goes on when its caller is interrupted.
 */
export const beginningInTime = <A, E>(
  ms: number,
  fork: (beginning: Beginning) => Effect.Effect<Fiber.Fiber<A | "busy", E>>
): Effect.Effect<A | "busy", E> =>
  Effect.gen(function* () {
    const answer = Deferred.makeUnsafe<A | "busy", E>()
    let state: "waits" | "has begun" | "given up" = "waits"
    const mayBegin = (): boolean => state !== "given up"
    const begin = (): boolean => {
      if (mayBegin()) state = "has begun"
      return mayBegin()
    }
    const fiber = yield* fork({ mayBegin, begin })
    fiber.addObserver((exit) => Deferred.doneUnsafe(answer, exit))
    const giveUp = Effect.sync(() => {
      if (state !== "waits") return
      state = "given up"
      Deferred.doneUnsafe(answer, Exit.succeed("busy"))
    })
    const timer = yield* Effect.forkDetach(Effect.andThen(Effect.sleep(ms), giveUp))
    return yield* Effect.ensuring(
      Deferred.await(answer),
      Effect.sync(() => timer.interruptUnsafe())
    )
  })
