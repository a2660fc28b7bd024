import { Effect } from "effect"
import type { Answer, OutboundRequest } from "@tidegate/connectors/Connector"
import type { Egress } from "@tidegate/egress/Egress"
import type { Echoes } from "@tidegate/redaction/Echoes"
import type { StepError } from "@tidegate/workflows/StepKind"

/** Sends one request of a step through the guarded egress, and returns the result. */
export const exchange = (
  egress: Pick<Egress["Service"], "deliver">,
  request: OutboundRequest,
  {
    captureBytes,
    echoes,
    timeoutMs
  }: { readonly captureBytes: number; readonly echoes: Echoes | null; readonly timeoutMs: number }
): Effect.Effect<Answer, StepError> =>
  Effect.flatMap(
    Effect.promise((signal) => egress.deliver({ ...request, captureBytes, timeoutMs, signal })),
    ({ body, bodyTruncated, errorCode, errorMessage, headers, status }) => {
      if (errorCode !== null || status === null) {
        const message = errorMessage ?? "no full answer"
        return Effect.fail<StepError>({ code: errorCode ?? "UNKNOWN", message: echoes?.text(message) ?? message })
      }
      return Effect.succeed(withoutEchoes({ status, headers, body, bodyTruncated }, echoes))
    }
  )

/** The answer without those values of the call that it repeats and that must not be stored. */
export const withoutEchoes = (answer: Answer, echoes: Echoes | null): Answer =>
  echoes === null
    ? answer
    : {
        ...answer,
        headers: echoes.values(answer.headers),
        body: echoes.bytes(answer.body, answer.bodyTruncated)
      }
