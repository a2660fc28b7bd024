import { Clock, Effect, Result } from "effect"
import type { HttpCall } from "@tidegate/actions/Call"
import type { Answer } from "@tidegate/connectors/Connector"
import type { Failure } from "@tidegate/connectors/Failure"
import { Egress } from "@tidegate/egress/Egress"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import { Echoes } from "@tidegate/redaction/Echoes"
import type { StepError } from "@tidegate/workflows/StepKind"
import { waitOf } from "../../holds/TargetHold.ts"
import { Loops } from "../../Loops.ts"
import { exchange } from "./Exchange.ts"
import type { Carry } from "./Call.ts"
import { withCallHeaders } from "./CallHeaders.ts"

/** The failure that the status means; null: the target has accepted the call. */
const failureOf = ({ status }: Answer): Failure | null =>
  status >= 200 && status < 300 ? null : { code: "BAD_RESPONSE", message: `HTTP ${status}`, final: false }

/** Adds to the error how long the target asks to wait, from whichever header or body says it. */
const withWait = (error: StepError, failure: Failure | null, answer: Answer, now: number): StepError => {
  if (failure === null || error.retry_after_ms !== undefined) return error
  const wait = waitOf(failure, { ...answer, errorCode: null }, now)
  return typeof wait === "number" ? { ...error, retry_after_ms: wait } : error
}

/** Sends a request through the guard, and judges the answer. Redirects are answers and are not followed, as for destinations. */
export const makeHttpCall = Effect.map(Effect.all([Egress, Loops]), ([egress, loops]): Carry<HttpCall> =>
  Effect.fnUntraced(function* ({ captureBytes, output, request, secrets }, { effect, heard, key, run }) {
    const headers = withCallHeaders(request.headers, effect, run, key, loops)
    const bounds = { captureBytes, echoes: Echoes.of(secrets), timeoutMs: effect.step.timeoutMs }
    const answer = yield* exchange(egress, { ...request, headers }, bounds)
    const failure = failureOf(answer)
    yield* heard(answer, failure ?? "successful")
    // A target's answer is parsed in an event-loop iteration of its own.
    yield* laterTurn
    const now = yield* Clock.currentTimeMillis
    return yield* Effect.fromResult(Result.mapError(output(answer), (error) => withWait(error, failure, answer, now)))
  })
)
