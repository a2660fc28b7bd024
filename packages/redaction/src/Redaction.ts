import type { Schema } from "effect"
import { parseQuery, type Values } from "@tidegate/model/Message"
import { runToEnd } from "@tidegate/runtime/Resumable"
import type { RequestData } from "@tidegate/model/Request"
import { Redactor } from "./Redactor.ts"
import { redacted, redactedInPreviews } from "./SecretValues.ts"

export { withoutSecretLooks } from "./SecretValues.ts"

/**
 * Makes a request safe to show to strangers. Secrets are detected by name and by form, also within encodings (JSON in text, forms,
 * percent-encoding, base64); content that cannot be decoded is removed. Fails closed: a possible secret is treated as one, because a leaked
 * secret cannot be recalled.
 */

export interface Redacted {
  readonly method: string
  readonly path: string
  /** Path and query. */
  readonly url: string
  readonly headers: Values
  readonly query: Values
  readonly body: Schema.Json
  /** Whether `body` is only the beginning, or was removed because its content is unknown. */
  readonly body_truncated: boolean
}

/** Characters of a non-JSON text that are shown. It is cut before it is searched, so that the search sees the text as readers will. */
const textAtMost = 64 * 1024

/** Bytes. Larger JSON is removed: half of it cannot be checked, and checking all of it would delay other work. */
const jsonAtMost = 128 * 1024

interface Options {
  /** Names that are secret in this request, in addition to the usual ones. */
  readonly secretNames: ReadonlyArray<string>
  readonly includeBody: boolean
}

/** Redacts a request. Resumable, because it may take long: it yields every few milliseconds (`inSlices`). */
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

/** The same without pauses. */
export const redact = (data: RequestData, options: Options): Redacted => runToEnd(redaction(data, options))

/** A single small value that is safe to show, by its path: a secret name in the path hides it. */
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
    // A parameter without a value may consist of a secret alone: `?eyJ…`.
    shown.push([yield* redactor.text(name), typeof value === "string" ? all[0]! : all])
  }
  return Object.fromEntries(shown)
}

/** The segment after a segment with a secret name is a secret: `/reset-password/x`. */
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
  // JSON that was too large to parse is not recognised as JSON in its text form.
  if (typeof data.body !== "string" || data.reason !== undefined) return leftOut
  const isCut = data.body.length > textAtMost
  const text = isCut ? data.body.slice(0, textAtMost) : data.body
  return { body: yield* redactor.text(text.toWellFormed()), body_truncated: isCut || data.is_large_payload }
}
