import { Cause, Effect, Schedule } from "effect"
import { fail, GatewayError } from "@tidegate/model/GatewayError"
import { parseQuery } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import { parsingBody } from "@tidegate/rules/RequestInput"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Database } from "@tidegate/storage/Database"
import { receivedAs } from "@tidegate/workflows/kinds/WaitStep"
import { WorkflowEntity } from "./WorkflowProtocol.ts"
import { type SignalledStep, type Signalling, signalStep } from "./StepSignal.ts"

/** A call to the URL of a step that waits for it. */
export interface CallbackReceived extends SignalledStep {
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  readonly query: string
  /** In base64: bytes travel between processes as text. */
  readonly body: string
}

/** Credentials of the caller. They are left out: the URL itself has proven that the caller may call. */
const credentials = new Set(["authorization", "proxy-authorization", "cookie"])

/** Ends the wait of a step by a call to its URL. A call that comes before the step waits is kept for it. */
export const receiveCallback = Effect.fnUntraced(function* (
  workflowId: string,
  signalling: Signalling,
  received: CallbackReceived
): Effect.fn.Return<void, GatewayError, Database> {
  const headers = Object.fromEntries(Object.entries(received.headers).filter(([name]) => !credentials.has(name)))
  const body = yield* inSlices(parsingBody(received.headers, Buffer.from(received.body, "base64")))
  const query = { ...parseQuery(received.query) } as { readonly [name: string]: Json }
  const callback = { method: received.method, headers, query, body }
  yield* signalStep(workflowId, signalling, received, "callback", (now) => receivedAs(callback, now))
})

/** Longer than a fail-over of a shard to another runner takes, shorter than callers wait. */
const deadline = "15 seconds"

/** While a workflow moves to another process, its next owner is asked as soon as it has the shard. */
const again = Schedule.spaced("100 millis")

/** Sends a callback to the workflow's owner, wherever it is. Any failure to reach it may be repeated by the caller. */
export const askReceive = Effect.map(
  WorkflowEntity.client,
  (client) =>
    (workflowId: string, received: CallbackReceived): Effect.Effect<void, GatewayError> =>
      Effect.suspend(() => client(workflowId).Receive(received)).pipe(
        Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail("moved" as const)),
        Effect.retry({ while: (error) => error === "moved", schedule: again }),
        Effect.timeoutOrElse({ duration: deadline, orElse: () => Effect.fail("late" as const) }),
        Effect.mapError((error) =>
          error instanceof GatewayError ? error : fail("QUEUE_UNAVAILABLE", "the workflow cannot be reached; try again")
        )
      )
)
