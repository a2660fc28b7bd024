import { Cause, Effect, type Fiber } from "effect"
import type { HttpSender, Verdict } from "@tidegate/connectors/Connector"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { type Ending, endingOf } from "../../limits/ConcurrencyLimit.ts"
import { type Attempt, type Outcome, unanswered, verdictOf, withoutEchoes } from "./Attempt.ts"

/** Receives the ends of attempts: each attempt ends with exactly one of these calls. */
export interface Ends {
  /** It has ended. Throws only when that could not be processed. */
  readonly finished: (attempt: Attempt, outcome: Outcome, verdict: Verdict, how: Ending) => void
  /** Nothing was sent, and the event belongs to another owner now. */
  readonly abandoned: (attempt: Attempt) => void
  /** A consumer has it: the attempt goes on as a lease, which ends with one of the other calls. */
  readonly handedOut: (attempt: Attempt) => void
  /** The tunnel client that had it is gone, or the consumer that has asked for it. */
  readonly returned: (attempt: Attempt) => void
  /** It failed unexpectedly, and reporting that failed too. */
  readonly lost: (attempt: Attempt) => void
}

export interface EndingHost {
  /** The destination's id. */
  readonly id: string
  readonly now: () => number
  readonly holdsLease: () => boolean
  readonly run: <A, E>(effect: Effect.Effect<A, E, Database | Secrets>) => Fiber.Fiber<A, E>
  /** Whether its target accepts nothing now: what is not sent yet waits. */
  readonly isHeld: () => boolean
  /** A target has answered; called before the end of the attempt is reported. */
  readonly heard: (outcome: Outcome, verdict: Verdict) => void
  readonly ends: Ends
}

/**
 * Decides how attempts have ended, and reports it. An unexpected error in an attempt, at once or with its answer, is a failed
 * attempt: it is recorded before anything is sent again, and the retry rule applies. Only when it cannot be recorded either is the
 * event put back, to be read again later.
 */
export const makeAttemptEnding = ({ ends, heard, holdsLease, id, isHeld, now, run }: EndingHost) => {
  /** Called when a request is about to be written. That may be long after it began, because it waits for a connection. */
  const mayWrite = (): boolean => holdsLease() && !isHeld()

  const guarded = (attempt: Attempt, step: () => void): void => {
    try {
      step()
    } catch (cause) {
      queueMicrotask(() => brokeDown(attempt, cause))
    }
  }

  /**
   * Continues an attempt later in this iteration of the event loop, but not at once: the queue starts the next attempt when this
   * one ends, and a backlog of such attempts would exceed the call stack.
   */
  const soon = (attempt: Attempt, step: () => void): void => queueMicrotask(() => guarded(attempt, step))

  const finish = (attempt: Attempt, answer: Outcome, judged: Verdict, how: Ending): void => {
    const [outcome, verdict] = withoutEchoes(attempt, answer, judged)
    ends.finished(attempt, outcome, verdict, how)
  }

  const brokeDown = (attempt: Attempt, cause: unknown): void => {
    const { eventId } = attempt.item
    const about = { destination_id: id, event_id: eventId }
    run(Effect.logError("an attempt broke down", about, Cause.isCause(cause) ? cause : Cause.die(cause)))
    try {
      const failure = { code: "INTERNAL_ERROR", message: "the gateway could not make this attempt" } as const
      const at = now()
      finish(attempt, unanswered(failure.code, failure.message, at, at), { ...failure, final: false }, "unsent")
    } catch (again) {
      run(Effect.logError("an attempt that broke down could not be recorded", about, Cause.die(again)))
      ends.lost(attempt)
    }
  }

  /**
   * Whether the attempt waited for its connection until another owner had the shard, or the target accepted nothing. Then it was
   * no attempt.
   */
  const isOver = ({ errorCode, status }: Outcome): boolean =>
    errorCode === "NETWORK_REQUEST_CANCELED" && status === null && !mayWrite()

  return {
    mayWrite,
    guarded,
    soon,
    brokeDown,
    finish,
    isOver,
    abandon: (attempt: Attempt): void => ends.abandoned(attempt),
    returned: (attempt: Attempt): void => ends.returned(attempt),
    /** Ends an attempt for which nothing was sent. */
    refuse: (attempt: Attempt, code: AttemptErrorCode, message: string, final: boolean): void =>
      soon(attempt, () => {
        const { startedAt } = attempt
        finish(attempt, unanswered(code, message, startedAt, startedAt), { code, message, final }, "unsent")
      }),
    /** Ends an attempt with its target's answer, or with the cause why there is none. */
    answered: (attempt: Attempt, outcome: Outcome, judge: HttpSender["judge"]): void => {
      if (isOver(outcome)) return ends.abandoned(attempt)
      const verdict = verdictOf(outcome, judge)
      heard(outcome, verdict)
      finish(attempt, outcome, verdict, endingOf(outcome))
    }
  }
}

export type AttemptEnding = ReturnType<typeof makeAttemptEnding>
