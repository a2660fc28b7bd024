import type { Answer } from "@tidegate/connectors/Connector"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import { askedWait } from "@tidegate/rules/Retry"
import type { StepError } from "@tidegate/workflows/StepKind"
import { isUtf8 } from "node:buffer"
import { Result, type Schema } from "effect"

/** Converts the answers of targets to the output of a step. */

/** Limits of an answer's body. */
export const maxAnswerBytes = 1_048_576

/** The parsed JSON if it is quick to parse, the text if it is text, otherwise base64. */
const read = ({ body, headers }: Answer): { readonly body: Json; readonly encoding: "json" | "text" | "base64" } => {
  const type = String(headers["content-type"] ?? "").toLowerCase()
  const mayBeJson = type === "" || /[/+](?:json|ndjson)\b|^text\/plain\b/.test(type)
  const parsed = mayBeJson && body.length > 0 ? parseJson(body) : null
  if (parsed?.kind === "json") return { body: parsed.value as Json, encoding: "json" }
  return isUtf8(body) ? { body: utf8(body), encoding: "text" } : { body: body.toString("base64"), encoding: "base64" }
}

/** The milliseconds that an answer asks the caller to wait; null if it does not say so, or cannot be understood. */
const waitOf = ({ headers }: Answer): number | null => {
  const [after, date] = [headers["retry-after"], headers["date"]]
  return typeof after === "string" ? askedWait(after, Date.parse(String(date))) : null
}

/** A 2xx becomes the output; any other status is a failure. */
export const answered = (answer: Answer): Result.Result<Schema.JsonObject & { readonly body: Json }, StepError> => {
  const { bodyTruncated, headers, status } = answer
  if (status < 200 || status >= 300) {
    const retry_after_ms = waitOf(answer)
    return Result.fail({
      code: "BAD_RESPONSE",
      message: `HTTP ${status}`,
      status,
      ...(retry_after_ms === null ? {} : { retry_after_ms })
    })
  }
  if (bodyTruncated) {
    return Result.fail({
      code: "OUTPUT_TOO_LARGE",
      message: `the answer has more than ${maxAnswerBytes} bytes`,
      status
    })
  }
  return Result.succeed({ status, headers: shownHeaders(headers), ...read(answer) })
}

const shownHeaders = (headers: Answer["headers"]): Schema.JsonObject =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]): ReadonlyArray<readonly [string, Schema.Json]> =>
      value === undefined ? [] : [[name, typeof value === "string" ? value : [...value]]]
    )
  )

export const answerSchema = {
  type: "object",
  properties: {
    status: { type: "integer" },
    headers: { type: "object" },
    body: { description: "JSON where the answer is some, else its text; of bytes that are none, base64" },
    encoding: { type: "string", enum: ["json", "text", "base64"] }
  },
  required: ["status", "headers", "body", "encoding"]
} as const satisfies Schema.JsonObject

export const answerSample = {
  status: 200,
  headers: { "content-type": "application/json" },
  body: {},
  encoding: "json"
} as const
