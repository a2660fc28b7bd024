import { Effect } from "effect"
import type { Answer } from "@tidegate/connectors/Connector"
import type { Values } from "@tidegate/model/Message"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { answerOf } from "@tidegate/workflows/StepAnswer"
import type { StepError } from "@tidegate/workflows/StepKind"

/** The headers that an answer has. */
const valuesOf = (headers: Answer["headers"]): Values =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** The error of a call that its target has answered, with the answer. */
export const withAnswer = (
  error: StepError,
  answer: Omit<Answer, "body"> & { readonly body: Uint8Array }
): Effect.Effect<StepError> => {
  const { body, bodyTruncated, headers, status } = answer
  const received = { status, headers: valuesOf(headers), body, truncated: bodyTruncated }
  return Effect.map(inSlices(answerOf(received)), (response) => ({ ...error, response }))
}
