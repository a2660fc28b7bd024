import { Result, Schema } from "effect"
import { maxRequestBody } from "@tidegate/model/BodyLimits"
import * as Characters from "@tidegate/model/Characters"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { isGateways, setByClient, testRequestHeader } from "@tidegate/model/HeaderRules"
import { didYouMean } from "@tidegate/model/NearestName"
import {
  generalSamples,
  momentAt,
  requestOf,
  type SampleRequest,
  samplesOf
} from "@tidegate/verification/samples/Catalog"
import type { Moment } from "@tidegate/verification/samples/Sample"
import { signerOf, signingSecretOf, type Verifying } from "@tidegate/verification/Signing"
import { every, fieldError, type FieldErrors, judgeBody, type Members } from "./Input.ts"
import { optional, text } from "./Members.ts"
import {
  headerName,
  isQueryTooLong,
  longestQuery,
  notInValue,
  queryOf,
  RequestSample,
  ShownRequestSample
} from "./RequestParts.ts"
import { isWithoutSenders } from "./source/WithoutSenders.ts"

/** A test request: a sample of the source's type, or what the caller has written, signed as the provider signs. */

/** Ingress accepts so many lines of headers, and so many bytes of them, with those that the gateway adds. */
const mostHeaders = 200
const largestHeaders = 24 * 1024

const Headers = Schema.Record(Schema.String, Schema.String).annotate({ message: "must be an object of strings" })

const Input = Schema.Struct({
  ...RequestSample.fields,
  headers: Schema.optionalKey(Headers),
  sample: Schema.optionalKey(text.check(Characters.upTo(100))),
  signed: Schema.optionalKey(Schema.Boolean.annotate({ message: "must be true or false" }))
})
export type TestRequest = typeof Input.Type

/** A path is sent as it is, and decides to which source the request goes: it must not leave the source's URL. */
const staysBelow = (path: string): boolean =>
  /^\/[\x21\x22\x24-\x3e\x40-\x7e]*$/.test(path) && !/(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(path)

const headerFaults = (headers: typeof Headers.Type): Result.Result<void, FieldErrors> => {
  const lines = Object.entries(headers)
  const wrong = lines.some(([name, value]) => !headerName.test(name) || notInValue.test(value))
  if (wrong) return fieldError("headers", "must have header names, and values without control characters")
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  const own = names.find((name) => setByClient.has(name) || isGateways(name))
  if (own !== undefined) return fieldError(`headers.${own}`, "is set by the gateway")
  if (new Set(names).size !== names.length) return fieldError("headers", "must name each header once")
  const bytes = lines.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0)
  return lines.length > mostHeaders || bytes > largestHeaders
    ? fieldError("headers", `must be at most ${mostHeaders}, with ${largestHeaders} bytes`)
    : Result.void
}

const check = (input: TestRequest): Result.Result<TestRequest, FieldErrors> =>
  Result.map(
    every({
      both:
        input.sample !== undefined && input.body !== undefined
          ? fieldError("sample", "must not be given with a body of one's own")
          : Result.void,
      path:
        input.path === undefined || staysBelow(input.path)
          ? Result.void
          : fieldError("path", "must have no character that a URL's path escapes, and no . or .. as a part"),
      query:
        isQueryTooLong(input) || !/^[\x21\x22\x24-\x7e]*$/.test(queryOf(input))
          ? fieldError("query", `must be at most ${longestQuery} characters that a URL's query does not escape`)
          : Result.void,
      headers: headerFaults(input.headers ?? {})
    }),
    () => input
  )

export const testRequestExample = {
  headers: { "x-trial": "1" },
  body: { type: "order.created", id: 2 }
} as const

export const testRequestBody = {
  described: Schema.Struct({
    ...ShownRequestSample.fields,
    headers: optional(Headers),
    sample: optional(
      Schema.String.check(Characters.upTo(100)).annotate({
        description: "One of the samples of the source's type (`GET /source-types`). Default: the first one"
      })
    ),
    body: optional(
      Schema.Json.annotate({
        description: "A body of one's own instead of a sample: a text is sent as it is, anything else as JSON"
      })
    ),
    signed: optional(
      Schema.Boolean.annotate({
        description: "Default: true, if the source verifies its senders. false: the request is sent unsigned"
      })
    )
  }).annotate({ identifier: "TestRequestInput", examples: [testRequestExample] }),
  judge: (written: Members): Result.Result<TestRequest, GatewayError> =>
    Result.mapError(judgeBody(Input, written, check), (faults) => invalid(faults))
}

/** The source of a test request, with its secrets in plain text. */
export interface TestedSource extends Verifying {
  readonly isDisabled: boolean
  /** Without a slash at its end. */
  readonly url: string
}

/** A test request as it is sent. */
export interface ComposedRequest extends SampleRequest {
  readonly headers: Record<string, string>
  /** Null: the body is the caller's own. */
  readonly sample: string | null
  readonly signed: boolean
}

/** Why nobody can send to the source; null: somebody can. */
export const testRefusal = ({ isDisabled, type }: Pick<TestedSource, "isDisabled" | "type">): GatewayError | null => {
  if (isWithoutSenders(type)) {
    return fail(
      "SOURCE_WITHOUT_SENDERS",
      `the gateway itself makes the requests of a source of type ${type}: nobody can send to it`
    )
  }
  return isDisabled ? fail("SOURCE_DISABLED", "the source is disabled: it would reject the request") : null
}

const ownBody = (body: Schema.Json): Pick<SampleRequest, "body" | "headers"> => ({
  headers: { "content-type": typeof body === "string" ? "text/plain; charset=utf-8" : "application/json" },
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body), "utf8")
})

const contentOf = (
  type: string,
  { body, sample: named }: TestRequest,
  now: Moment
): Result.Result<Pick<ComposedRequest, "body" | "headers" | "sample">, GatewayError> => {
  if (body !== undefined) return Result.succeed({ ...ownBody(body), sample: null })
  const known = samplesOf(type) ?? generalSamples
  const names = known.samples.map(({ event }) => event)
  const sample = named === undefined ? known.samples[0] : known.samples.find(({ event }) => event === named)
  if (sample === undefined) {
    const message = `is no sample of ${type}${didYouMean(named ?? "", names)}: there are ${names.join(", ")}`
    return Result.fail(invalid([{ path: "sample", message }]))
  }
  const { body: bytes, headers } = requestOf(known, sample, now)
  return Result.succeed({ body: bytes, headers: { ...headers }, sample: sample.event })
}

const unsignable = (message: string): Result.Result<never, GatewayError> =>
  Result.fail(fail("SIGNATURE_UNAVAILABLE", `${message}; send it with signed: false`))

/** The headers and the body that a signature adds; null: the source does not verify, or the caller wants none. */
const signatureOf = (
  source: TestedSource,
  request: SampleRequest,
  wanted: boolean | undefined,
  now: { readonly seconds: number; readonly id: string }
): Result.Result<Pick<SampleRequest, "body" | "headers"> | null, GatewayError> => {
  if (source.auth_type === null || wanted === false) return Result.succeed(null)
  if (signingSecretOf(source) === null) {
    return unsignable(`only the provider itself can sign requests of ${source.type}`)
  }
  const sign = signerOf(source)
  if (sign === null) return unsignable("the source has no secret yet with which a request can be signed")
  const { body, headers, method, path } = request
  const signed = sign({ method, url: source.url + path, headers, body, nowSeconds: now.seconds, id: now.id })
  return signed === null
    ? unsignable(`the body is of a kind that ${source.type} does not sign: a JSON object, or a form, is needed`)
    : Result.succeed(signed)
}

/** A test request of a source: what is sent to ingress. */
export const composeTestRequest = (
  source: TestedSource,
  input: TestRequest,
  { entropy, milliseconds }: { readonly milliseconds: number; readonly entropy: (bytes: number) => Uint8Array }
): Result.Result<ComposedRequest, GatewayError> => {
  const refusal = testRefusal(source)
  if (refusal !== null) return Result.fail(refusal)
  const now = momentAt(milliseconds, entropy)
  return Result.flatMap(contentOf(source.type, input, now), ({ body, headers: usual, sample }) => {
    if (body.length > maxRequestBody) {
      return Result.fail(fail("PAYLOAD_TOO_LARGE", `the body is larger than ${maxRequestBody} bytes`))
    }
    const own = Object.entries(input.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const)
    const headers: Record<string, string> = {
      "user-agent": "Tidegate test request",
      ...usual,
      ...Object.fromEntries(own),
      [testRequestHeader]: "true"
    }
    const query = queryOf(input)
    const path = `${input.path === "/" ? "" : (input.path ?? "")}${query === "" ? "" : `?${query}`}`
    const method = input.method ?? "POST"
    const hasBody = method !== "GET" && method !== "HEAD"
    const unsigned = { method, path, headers, body: hasBody ? body : Buffer.alloc(0) }
    const id = `msg_${now.id(24)}`
    return Result.map(signatureOf(source, unsigned, input.signed, { seconds: now.seconds, id }), (signed) => ({
      ...unsigned,
      body: signed?.body ?? unsigned.body,
      headers: { ...headers, ...signed?.headers },
      sample,
      signed: signed !== null
    }))
  })
}
