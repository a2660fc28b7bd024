import { Clock, Effect, Result } from "effect"
import type { HttpCall } from "@tidegate/actions/Call"
import type { Answer, Failure } from "@tidegate/connectors/Connector"
import { Egress } from "@tidegate/egress/Egress"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import { Echoes } from "@tidegate/redaction/Echoes"
import type { StepError } from "@tidegate/workflows/StepKind"
import { waitOf } from "../../holds/TargetHold.ts"
import { Loops } from "../../Loops.ts"
import { exchange } from "./Exchange.ts"
import type { Carry } from "./ActionEffect.ts"
import { withCallHeaders } from "./CallHeaders.ts"

/** What the status says of the target; null: it has taken the call. */
const failureOf = ({ status }: Answer): Failure | null =>
  status >= 200 && status < 300 ? null : { code: "BAD_RESPONSE", message: `HTTP ${status}`, final: false }

/** The error, with how long the target asks to be left alone, in whichever way it says that. */
const withWait = (error: StepError, failure: Failure | null, answer: Answer, now: number): StepError => {
  if (failure === null || error.retry_after_ms !== undefined) return error
  const wait = waitOf(failure, { ...answer, errorCode: null }, now)
  return typeof wait === "number" ? { ...error, retry_after_ms: wait } : error
}

/** A request, by the guard, and what its answer means. Redirects are answers, as they are to destinations. */
export const makeHttpCall = Effect.map(Effect.all([Egress, Loops]), ([egress, loops]): Carry<HttpCall> =>
  Effect.fnUntraced(function* ({ captureBytes, output, request, secrets }, { effect, heard, key, run }) {
    const headers = withCallHeaders(request.headers, effect, run, key, loops)
    const bounds = { captureBytes, echoes: Echoes.of(secrets), timeoutMs: effect.step.timeoutMs }
    const answer = yield* exchange(egress, { ...request, headers }, bounds)
    const failure = failureOf(answer)
    yield* heard(answer, failure ?? "successful")
    // What a stranger has said is read in a turn of the loop for itself.
    yield* laterTurn
    const now = yield* Clock.currentTimeMillis
    return yield* Effect.fromResult(Result.mapError(output(answer), (error) => withWait(error, failure, answer, now)))
  })
)
