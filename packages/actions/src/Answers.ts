import type { Answer } from "@tidegate/connectors/Connector"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import type { StepError } from "@tidegate/workflows/StepKind"
import { isUtf8 } from "node:buffer"
import { Result, type Schema } from "effect"

/** What targets answer, as the output of a step. */

/** Of an answer's body. */
export const maxAnswerBytes = 1_048_576

/** JSON where it is some that can be parsed in a moment, text where it is text, else base64. */
const read = ({ body, headers }: Answer): { readonly body: Json; readonly encoding: "json" | "text" | "base64" } => {
  const type = String(headers["content-type"] ?? "").toLowerCase()
  const mayBeJson = type === "" || /[/+](?:json|ndjson)\b|^text\/plain\b/.test(type)
  const parsed = mayBeJson && body.length > 0 ? parseJson(body) : null
  if (parsed?.kind === "json") return { body: parsed.value as Json, encoding: "json" }
  return isUtf8(body) ? { body: utf8(body), encoding: "text" } : { body: body.toString("base64"), encoding: "base64" }
}

/** Milliseconds that an answer asks to be waited; none where it says nothing that can be understood. */
const waitOf = ({ headers }: Answer): number | undefined => {
  const [after, date] = [headers["retry-after"], headers["date"]]
  if (typeof after !== "string") return undefined
  // A fraction is against the standard, and what some APIs say.
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(after)) return Math.ceil(Number(after) * 1_000)
  // By the answer's own date, so that two clocks need not agree.
  const wait = Date.parse(after) - Date.parse(String(date))
  return Number.isNaN(wait) || wait < 0 ? undefined : wait
}

/** A 2xx in full; anything else is a failure. */
export const answered = (answer: Answer): Result.Result<Schema.JsonObject & { readonly body: Json }, StepError> => {
  const { bodyTruncated, headers, status } = answer
  if (status < 200 || status >= 300) {
    const retry_after_ms = waitOf(answer)
    return Result.fail({
      code: "BAD_RESPONSE",
      message: `HTTP ${status}`,
      status,
      ...(retry_after_ms === undefined ? {} : { retry_after_ms })
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
