import { Effect } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { Sandbox, type SandboxUnavailable } from "@tidegate/sandbox/Sandbox"

/** When the sandbox is temporarily unavailable, the code is not at fault: 503, and the call may be repeated. */
export const available = <A>(effect: Effect.Effect<A, SandboxUnavailable>): Effect.Effect<A, GatewayError> =>
  Effect.mapError(effect, () => fail("QUEUE_UNAVAILABLE", "code cannot be run for the moment; repeat the request"))

/** 400 TRANSFORMATION_INVALID unless the code compiles; `line` (from 1, or null) and `message` in the data. */
export const checkCode = Effect.fnUntraced(function* (code: string): Effect.fn.Return<void, GatewayError, Sandbox> {
  const sandbox = yield* Sandbox
  const problem = yield* available(sandbox.check(code))
  if (problem === null) return
  const { line, message } = problem
  const place = line === null ? "" : ` (line ${line})`
  yield* fail("TRANSFORMATION_INVALID", `the code does not compile: ${message}${place}`, { line, message })
})

/** 400 TRANSFORMATION_INVALID unless the code of every transformation written inside these rules compiles. */
export const checkInlineCode = (rules: ReadonlyArray<Rule>): Effect.Effect<void, GatewayError, Sandbox> =>
  Effect.forEach(
    rules,
    (rule) =>
      rule.type === "transform" && "transformation" in rule ? checkCode(rule.transformation.code) : Effect.void,
    { discard: true }
  )
