import { Effect, Exit, Fiber, RcRef, Scope } from "effect"
import type { Answer, AttemptFacts, Session, SessionServices, SessionSender } from "@tidegate/connectors/Connector"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import type { Message } from "@tidegate/model/Message"

/** An unused session is closed after this time. */
const idle = "30 seconds"

const timedOut = (timeoutMs: number): SessionFailure =>
  new SessionFailure({
    code: "TIMEOUT",
    message: `not sent within ${timeoutMs / 1_000} seconds`,
    final: false,
    broken: true
  })

/** How a send ended. A defect is the connector's fault. */
export type SendExit = Exit.Exit<Answer, SessionFailure>

/**
 * The session of one sender. It is opened when needed, shared by all sends, and reopened after it broke. Every send ends exactly
 * once and in time, whatever its connector does: one that cannot be interrupted goes on in the background.
 */
export class HeldSession {
  readonly sender: SessionSender
  readonly #held: RcRef.RcRef<Session, SessionFailure>
  readonly #scope: Scope.Closeable
  readonly #run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly #cancels = new Set<() => void>()
  #released = false

  private constructor(
    sender: SessionSender,
    held: RcRef.RcRef<Session, SessionFailure>,
    scope: Scope.Closeable,
    run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  ) {
    this.sender = sender
    this.#held = held
    this.#scope = scope
    this.#run = run
  }

  /** The session lives in the scope of its destination's actor. */
  static readonly make = Effect.fnUntraced(function* (
    sender: SessionSender
  ): Effect.fn.Return<HeldSession, never, Scope.Scope | SessionServices> {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const held = yield* Scope.provide(RcRef.make({ acquire: sender.connect, idleTimeToLive: idle }), scope)
    return new HeldSession(sender, held, scope, Effect.runForkWith(yield* Effect.context()))
  })

  /**
   * `timeoutMs`: for the whole send, including opening the session. `mayStart` is called when the session is open, and again by
   * the session. `done` may be called before this returns.
   */
  send(
    message: Message,
    facts: AttemptFacts,
    timeoutMs: number,
    mayStart: () => boolean,
    done: (exit: SendExit) => void
  ): void {
    const sending = this.#run(
      Effect.scoped(
        Effect.flatMap(RcRef.get(this.#held), (session) =>
          mayStart() ? session.send(message, facts, mayStart) : Effect.fail(cancelled)
        )
      ).pipe(Effect.onExit((exit) => (isUsable(exit) ? Effect.void : RcRef.invalidate(this.#held))))
    )
    let isOver = false
    const end = (exit: SendExit): void => {
      if (isOver) return
      isOver = true
      this.#cancels.delete(cancel)
      timer.interruptUnsafe()
      if (this.#released && this.#cancels.size === 0) this.#run(Scope.close(this.#scope, Exit.void))
      done(exit)
    }
    const cancel = (): void => {
      end(Exit.fail(cancelled))
      sending.interruptUnsafe()
    }
    const timer = this.#run(
      Effect.andThen(
        Effect.sleep(timeoutMs),
        Effect.sync(() => {
          end(Exit.fail(timedOut(timeoutMs)))
          sending.interruptUnsafe()
          this.#run(RcRef.invalidate(this.#held))
        })
      )
    )
    this.#cancels.add(cancel)
    sending.addObserver(end)
  }

  /** Starts no more sends; those under way run to their end. */
  release(): void {
    this.#released = true
    if (this.#cancels.size === 0) this.#run(Scope.close(this.#scope, Exit.void))
  }

  /** Interrupts what is under way. */
  cancel(): void {
    for (const cancel of this.#cancels) cancel()
  }
}

const isUsable = (exit: SendExit): boolean => {
  if (Exit.isSuccess(exit)) return true
  const [reason, ...more] = exit.cause.reasons
  return more.length === 0 && reason?._tag === "Fail" && !reason.error.broken
}
