import type { Schema } from "effect"
import { parseQuery, type Values } from "@tidegate/model/Message"
import type { RequestData } from "@tidegate/model/Request"
import { Redactor } from "./redaction/Redactor.ts"
import { redacted } from "./redaction/SecretValues.ts"

export { withoutSecretLooks } from "./redaction/SecretValues.ts"

/**
 * A request as strangers may see it. Names and looks say what is secret; encodings are looked into (JSON in text, forms, percent-encoding,
 * base64), and what cannot be looked into is left out. It fails closed: what may be a secret is taken for one.
 */

export interface Redacted {
  readonly method: string
  readonly path: string
  /** Path and query. */
  readonly url: string
  readonly headers: Values
  readonly query: Values
  readonly body: Schema.Json
  /** Whether `body` is only the beginning, or was left out because nobody can tell what is in it. */
  readonly body_truncated: boolean
}

/** Of a text that is no JSON, so much is shown; cut off before it is looked at, so that what is cut is looked at as it will be seen. */
const textAtMost = 64 * 1024

/** JSON of more bytes is left out: half of it cannot be judged, and to judge all of it would keep everybody waiting. */
const jsonAtMost = 128 * 1024

/** `secretNames`: names that are secret in this request, beside those that always are. */
export const redact = (
  data: RequestData,
  options: { readonly secretNames: ReadonlyArray<string>; readonly includeBody: boolean }
): Redacted => {
  const redactor = new Redactor(options.secretNames)
  const path = redactPath(redactor, data.path)
  return {
    method: data.method,
    path,
    url: data.query === "" ? path : `${path}?${redactor.form(data.query)}`,
    headers: redactValues(redactor, data.headers),
    query: redactValues(redactor, parseQuery(data.query)),
    ...(options.includeBody ? redactBody(redactor, data) : { body: null, body_truncated: false })
  }
}

const redactValues = (redactor: Redactor, values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const one = (text: string) => redactor.named(name, text) as string
      // A parameter without a value may be all there is: `?eyJ…`.
      return [redactor.text(name), typeof value === "string" ? one(value) : value.map(one)]
    })
  )

/** What follows a step that is called like a secret is one: `/reset-password/x`. */
const redactPath = (redactor: Redactor, path: string): string => {
  let isSecret = false
  return redactor.text(
    path
      .split("/")
      .map((step) => {
        const shown = isSecret && step !== "" ? redacted : redactor.text(step)
        isSecret = step !== "" && redactor.isSecret(step)
        return shown
      })
      .join("/")
  )
}

const leftOut = { body: null, body_truncated: true }

const redactBody = (redactor: Redactor, data: RequestData): Pick<Redacted, "body" | "body_truncated"> => {
  if (data.encoding === "base64") return data.size_bytes === 0 ? { body: "", body_truncated: false } : leftOut
  if (data.encoding === "json") {
    return data.size_bytes > jsonAtMost ? leftOut : { body: redactor.value(data.body), body_truncated: false }
  }
  // JSON that was too costly to parse is not told from its text.
  if (typeof data.body !== "string" || data.reason !== undefined) return leftOut
  const isCut = data.body.length > textAtMost
  const text = isCut ? data.body.slice(0, textAtMost) : data.body
  return { body: redactor.text(text.toWellFormed()), body_truncated: isCut || data.is_large_payload }
}
