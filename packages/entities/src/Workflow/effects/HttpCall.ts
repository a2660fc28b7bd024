import { Effect } from "effect"
import type { HttpCall } from "@tidegate/actions/Call"
import { Egress } from "@tidegate/egress/Egress"
import { Echoes } from "@tidegate/redaction/Echoes"
import { exchange } from "./Exchange.ts"
import { failureOf, outputOf } from "./JudgedAnswer.ts"
import type { Carry } from "./Call.ts"
import { makeCallHeaders } from "./CallHeaders.ts"

/** Sends a request through the guard, and judges the answer. Redirects are answers and are not followed, as for destinations. */
export const makeHttpCall = Effect.map(
  Effect.all([Egress, makeCallHeaders]),
  ([egress, withCallHeaders]): Carry<HttpCall> =>
    Effect.fnUntraced(function* ({ captureBytes, output, request, secrets }, { effect, heard, key, run }) {
      const headers = withCallHeaders(request.headers, effect, run, key)
      const bounds = { captureBytes, echoes: Echoes.of(secrets), timeoutMs: effect.step.timeoutMs }
      const answer = yield* exchange(egress, { ...request, headers }, bounds)
      const failure = failureOf(answer)
      yield* heard(answer, failure ?? "successful")
      return yield* outputOf(answer, failure, output)
    })
)
