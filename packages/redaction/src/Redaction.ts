import type { Schema } from "effect"
import { parseQuery, type Values } from "@tidegate/model/Message"
import { runToEnd } from "@tidegate/runtime/Resumable"
import type { RequestData } from "@tidegate/model/Request"
import { Redactor } from "./Redactor.ts"
import { redacted, redactedInPreviews } from "./SecretValues.ts"

export { withoutSecretLooks } from "./SecretValues.ts"

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

interface Options {
  /** Names that are secret in this request, beside those that always are. */
  readonly secretNames: ReadonlyArray<string>
  readonly includeBody: boolean
}

/** The work in parts of a few milliseconds, because it may be long: between two of them others may have their turn (`inSlices`). */
export function* redaction(data: RequestData, options: Options): Generator<void, Redacted, void> {
  const redactor = new Redactor(options.secretNames)
  const path = yield* redactPath(redactor, data.path)
  return {
    method: data.method,
    path,
    url: data.query === "" ? path : `${path}?${yield* redactor.form(data.query)}`,
    headers: yield* redactValues(redactor, data.headers),
    query: yield* redactValues(redactor, parseQuery(data.query)),
    ...(options.includeBody ? yield* redactBody(redactor, data) : { body: null, body_truncated: false })
  }
}

/** The same at once. */
export const redact = (data: RequestData, options: Options): Redacted => runToEnd(redaction(data, options))

/** A single small value as strangers may see it, by the path that it stands at: a step that is called like a secret hides it. */
export const shownOf = (): ((path: string, value: Schema.Json) => Schema.Json) => {
  const redactor = new Redactor([], redactedInPreviews)
  return (path, value) => runToEnd(redactor.named(path, value))
}

function* redactValues(redactor: Redactor, values: Values): Generator<void, Values, void> {
  const shown: Array<readonly [string, string | ReadonlyArray<string>]> = []
  for (const [name, value] of Object.entries(values)) {
    const all: Array<string> = []
    for (const one of typeof value === "string" ? [value] : value)
      all.push((yield* redactor.named(name, one)) as string)
    // A parameter without a value may be all there is: `?eyJ…`.
    shown.push([yield* redactor.text(name), typeof value === "string" ? all[0]! : all])
  }
  return Object.fromEntries(shown)
}

/** What follows a step that is called like a secret is one: `/reset-password/x`. */
function* redactPath(redactor: Redactor, path: string): Generator<void, string, void> {
  let isSecret = false
  const steps: Array<string> = []
  for (const step of path.split("/")) {
    steps.push(isSecret && step !== "" ? redacted : yield* redactor.text(step))
    isSecret = step !== "" && redactor.isSecret(step)
  }
  return yield* redactor.text(steps.join("/"))
}

const leftOut = { body: null, body_truncated: true }

function* redactBody(
  redactor: Redactor,
  data: RequestData
): Generator<void, Pick<Redacted, "body" | "body_truncated">, void> {
  if (data.encoding === "base64") return data.size_bytes === 0 ? { body: "", body_truncated: false } : leftOut
  if (data.encoding === "json") {
    return data.size_bytes > jsonAtMost ? leftOut : { body: yield* redactor.value(data.body), body_truncated: false }
  }
  // JSON that was too costly to parse is not told from its text.
  if (typeof data.body !== "string" || data.reason !== undefined) return leftOut
  const isCut = data.body.length > textAtMost
  const text = isCut ? data.body.slice(0, textAtMost) : data.body
  return { body: yield* redactor.text(text.toWellFormed()), body_truncated: isCut || data.is_large_payload }
}
