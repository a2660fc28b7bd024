import { Clock, Effect, Result } from "effect"
import type { Sharding } from "effect/cluster"
import { inSlices, laterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { Values } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import { withoutPresented } from "@tidegate/verification/PresentedSecrets"
import { parsingBody } from "@tidegate/rules/RequestInput"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { DestinationEntity } from "../../Destination/DestinationProtocol.ts"
import type { StepSend, StepSent } from "../../Destination/steps/StepProtocol.ts"
import { Loops } from "../../Loops.ts"
import * as LocalEntities from "../../dispatch/LocalEntities.ts"
import { failed } from "../RunWork.ts"
import { stepTrace, tracedValues } from "./CallHeaders.ts"
import { messageOf, sentHeaders } from "./Envelope.ts"
import { withAnswer } from "./RefusedAnswer.ts"

/** Wait (ms) before a call is sent again that no runner accepted. */
const pause = "500 millis"
/** A message without an answer is sent again this long (ms) after its call's timeout. */
const answerIn = 60_000

export type Answered = Extract<StepSent, { kind: "answered" }>

/**
 * Sends through the destination's own actor, with its rate limit, credentials and guard. The call waits there among the
 * destination's events; the step's timeout counts for the call only. A lost message is sent again with the same key. An actor in
 * this process is called directly, because a message would cost more than the rest of the call.
 */
export const makeDestinationStep: Effect.Effect<
  (effect: StepEffect, run: DueRun, key: string) => Effect.Effect<Outcome>,
  never,
  Sharding.Sharding
> = Effect.gen(function* () {
  const destination = yield* DestinationEntity.client
  const called = yield* LocalEntities.Called
  const loops = yield* Loops
  const traceOf = yield* stepTrace

  const byMessage = (id: string, message: StepSend): Effect.Effect<StepSent> =>
    destination(id)
      .Send(message)
      .pipe(
        Effect.timeout(message.timeout_ms + answerIn),
        // The runner has gone, or has not started yet.
        Effect.catchCause(() => Effect.succeed<StepSent>({ kind: "again" }))
      )

  return Effect.fnUntraced(function* (effect: StepEffect, run: DueRun, key: string): Effect.fn.Return<Outcome> {
    const made = messageOf(effect, run)
    if (Result.isFailure(made)) return { kind: "failed", error: made.failure }
    const { context, start, step } = effect
    // Masks of the sender's credentials are used only to restore the credentials for a destination that may get them. In all
    // other calls they are removed.
    const request = made.success.presented === null ? withoutPresented(made.success) : made.success
    const message: StepSend = {
      team_id: run.team_id,
      workflow: { id: String(context.workflow["id"]), name: String(context.workflow["name"]) },
      run_id: run.id,
      step_id: step.step.id,
      key,
      attempt: start.attempt,
      loop: loops.next(sentHeaders(effect), run.request_id),
      timeout_ms: step.timeoutMs,
      since: yield* Clock.currentTimeMillis,
      request: {
        ...request,
        headers: tracedValues(traceOf(effect, run), request.headers),
        id: run.request_id,
        source_id: run.source_id,
        source_name: run.source_name
      }
    }
    const id = step.step.resource_id ?? ""
    for (;;) {
      const sent = yield* called.give(id, message) ?? byMessage(id, message)
      if (sent.kind === "answered") return yield* outcomeOf(sent)
      if (sent.kind === "failed") return yield* failureOf(sent)
      yield* Effect.sleep(pause)
    }
  })
})

/** A target's answer is parsed in an event-loop iteration of its own. */
export const readBody = (headers: Values, body: Uint8Array): Effect.Effect<Json> =>
  inSlices(
    (function* () {
      yield
      return yield* parsingBody(headers, body)
    })()
  )

const outcomeOf = Effect.fnUntraced(function* ({
  body,
  duration_ms,
  headers,
  status,
  truncated
}: Answered): Effect.fn.Return<Outcome> {
  // The call has been made: another attempt would not make the answer shorter.
  if (truncated) return failed("OUTPUT_TOO_LARGE", "the destination has answered with more than 1 MiB")
  const output = { status, headers: headers as Json, body: yield* readBody(headers, body), duration_ms }
  return { kind: "succeeded", output, ports: ["out"] }
})

const failureOf = Effect.fnUntraced(function* ({
  answer,
  code,
  final,
  message,
  retry_after_ms,
  status
}: Extract<StepSent, { kind: "failed" }>): Effect.fn.Return<Outcome> {
  const error = {
    code,
    message,
    ...(status === null ? {} : { status }),
    ...(retry_after_ms === null ? {} : { retry_after_ms }),
    ...(final ? { final } : {})
  }
  if (answer === undefined || status === null) return { kind: "failed", error }
  yield* laterTurn
  const { body, headers, truncated } = answer
  return { kind: "failed", error: yield* withAnswer(error, { status, headers, body, bodyTruncated: truncated }) }
})
