import { HttpUrl, setting, text } from "@tidegate/connectors/Settings"
import { type ExactNumber, isExactNumber } from "@tidegate/json/ExactNumber"
import type { Values } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import { isHeaderName, isSetByGateway } from "@tidegate/model/AuthSettings"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Result, Schema } from "effect"
import { maxAnswerBytes } from "./Answers.ts"
import { carriedBy } from "./AuthModes.ts"
import type { HttpCall } from "./Call.ts"
import { type Credentials, invalid, type SentTo } from "./Provider.ts"

/** Makes requests from the inputs of a step. */

const maxValues = 100

/** Described as a number, because the document has one kind of number. */
const Digits = Schema.Unknown.check(
  Schema.makeFilter((value) => isExactNumber(value), { toJsonSchema: () => ({ type: "number" }) })
) as unknown as Schema.Codec<ExactNumber>
const One = Schema.Union([text, Schema.Finite, Digits, Schema.Boolean])

/** Names and values; a list repeats its name. */
const Pairs = Schema.Record(Schema.String, Schema.Union([One, Schema.Array(One)])).check(
  Schema.isMaxProperties(maxValues, { message: `must have at most ${maxValues} members` })
)
type Pairs = typeof Pairs.Type

const pairsOf = (description: string) => setting(Pairs.annotate({ description }), null, "must be an object of texts")

export const Url = HttpUrl(4_096).annotate({ description: "Where to; without a fragment, a user name or a password" })

/** An origin with the character that ends it. Templates are allowed only after it. */
const beginning = /^https?:\/\/[^/\\?#{}\s]+(?:[/\\?#]|$)/i

/** Credentials are sent to the origin of the URL. */
export const sentToOrigin: SentTo = {
  inputs: ["url"],
  of: ({ url }) => {
    const [written] = (typeof url === "string" ? beginning.exec(url) : null) ?? []
    return written === undefined ? null : (URL.parse(written)?.origin ?? null)
  }
}

export const requestInputs = {
  headers: pairsOf("Header names and values"),
  query: pairsOf("Parameters that are appended to the URL's query")
}

/** Repeats each name for each of its values. */
export const entriesOf = (pairs: Pairs | null): ReadonlyArray<readonly [string, string]> =>
  Object.entries(pairs ?? {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)] as const)
  )

/** Headers by lower-case name. The object has no prototype, so it has no names that were not written. */
export const valuesOf = (pairs: Pairs | null): Values => {
  const values: Record<string, string | Array<string>> = Object.create(null)
  for (const [name, value] of entriesOf(pairs)) {
    const known = values[name.toLowerCase()]
    values[name.toLowerCase()] = known === undefined ? value : [known, value].flat()
  }
  return values
}

interface Written {
  readonly method: string
  readonly url: string
  readonly headers: Pairs | null
  readonly query: Pairs | null
  readonly body: Json
}

const refuse = (path: string, message: string): Result.Result<never, StepError> =>
  Result.fail(invalid([{ path, message }]))

/** The call for a request. `output`: reads the answer. */
export const requestOf = (
  { body, headers, method, query, url: written }: Written,
  credentials: Credentials,
  output: HttpCall["output"]
): Result.Result<HttpCall, StepError> => {
  const carried = carriedBy(credentials)
  const url = new URL(written)
  const shown = new URL(written)
  for (const [name, value] of entriesOf(query)) {
    url.searchParams.append(name, value)
    shown.searchParams.append(name, value)
  }
  for (const [name, value] of carried.query) url.searchParams.append(name, value)
  const flat: Array<string> = []
  const names = new Set(Object.keys(carried.headers))
  // Fails closed: inputs that were saved before names were validated are not sent.
  if ([...names].some(isSetByGateway)) return refuse("credentials", "name a header that is set by the gateway itself")
  for (const [name, value] of entriesOf(headers)) {
    const lower = name.toLowerCase()
    if (!isHeaderName(name)) return refuse("headers", "has a name that no header can have")
    if (isSetByGateway(lower)) return refuse(`headers.${lower}`, "is set by the gateway itself")
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return refuse(`headers.${lower}`, "has what no header can hold")
    // The credentials override other headers.
    if (Object.hasOwn(carried.headers, lower)) continue
    names.add(lower)
    flat.push(lower, value)
  }
  if (!names.has("user-agent")) flat.push("user-agent", "event-gateway/1")
  if (body !== null && !names.has("content-type")) {
    flat.push("content-type", typeof body === "string" ? "text/plain; charset=utf-8" : "application/json")
  }
  for (const [name, value] of Object.entries(carried.headers)) flat.push(name, value)
  return Result.succeed({
    kind: "http",
    request: {
      method,
      url: url.href,
      shownUrl: shown.href,
      headers: flat,
      body: Buffer.from(body === null ? "" : typeof body === "string" ? body : JSON.stringify(body))
    },
    captureBytes: maxAnswerBytes,
    secrets: carried.secrets,
    output
  })
}
