import { Effect } from "effect"
import type { HttpCall } from "@tidegate/actions/Call"
import { Egress } from "@tidegate/egress/Egress"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import { Echoes } from "@tidegate/redaction/Echoes"
import { Loops } from "../../Loops.ts"
import { exchange } from "./Exchange.ts"
import type { Carry } from "./ActionEffect.ts"
import { withCallHeaders } from "./CallHeaders.ts"

/** A request, by the guard, and what its answer means. Redirects are answers, as they are to destinations. */
export const makeHttpCall = Effect.map(Effect.all([Egress, Loops]), ([egress, loops]): Carry<HttpCall> =>
  Effect.fnUntraced(function* ({ captureBytes, output, request, secrets }, { effect, key, run }) {
    const headers = withCallHeaders(request.headers, effect, run, key, loops)
    const bounds = { captureBytes, echoes: Echoes.of(secrets), timeoutMs: effect.step.timeoutMs }
    const answer = yield* exchange(egress, { ...request, headers }, bounds)
    // What a stranger has said is read in a turn of the loop for itself.
    yield* laterTurn
    return yield* Effect.fromResult(output(answer))
  })
)
