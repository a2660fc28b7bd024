import { Clock, Effect, Result } from "effect"
import type { Answer } from "@tidegate/connectors/Connector"
import type { Failure } from "@tidegate/connectors/Failure"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { StepError } from "@tidegate/workflows/StepKind"
import { waitOf } from "../../holds/TargetHold.ts"
import { withAnswer } from "./RefusedAnswer.ts"

/** What the answer to a call over HTTP means for its step. */

/** The failure that the status means; null: the target has accepted the call. */
export const failureOf = ({ status }: Answer): Failure | null =>
  status >= 200 && status < 300 ? null : { code: "BAD_RESPONSE", message: `HTTP ${status}`, final: false }

/** Adds to the error how long the target asks to wait, from whichever header or body says it. */
const withWait = (error: StepError, failure: Failure | null, answer: Answer, now: number): StepError => {
  if (failure === null || error.retry_after_ms !== undefined) return error
  const wait = waitOf(failure, { ...answer, errorCode: null }, now)
  return typeof wait === "number" ? { ...error, retry_after_ms: wait } : error
}

/** The output of a step, or its error with the answer. An answer is parsed in an event-loop iteration of its own. */
export const outputOf = <A>(
  answer: Answer,
  failure: Failure | null,
  output: (answer: Answer) => Result.Result<A, StepError>
): Effect.Effect<A, StepError> =>
  Effect.gen(function* () {
    yield* laterTurn
    const now = yield* Clock.currentTimeMillis
    const given = output(answer)
    if (Result.isSuccess(given)) return given.success
    return yield* Effect.flip(withAnswer(withWait(given.failure, failure, answer, now), answer))
  })
