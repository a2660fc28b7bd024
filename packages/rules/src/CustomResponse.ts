import { parseJson } from "@tidegate/json/JsonText"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"
import { CustomResponse, type ResponseContentType } from "@tidegate/model/Source"
import { type Escape, jsonEscape, textEscape, xmlEscape } from "@tidegate/interpolation/Escape"
import { compileTemplate, type Template } from "@tidegate/interpolation/Template"
import { Result } from "effect"
import { below } from "./ConditionInvalid.ts"
import { complain, type Complaint, decode } from "./Decode.ts"
import { type CompiledFilter, compilingFilter, type FilterInput, firstPassing } from "./Filter.ts"
import { PatternBounds } from "./PatternBounds.ts"
import { type ReplyRoot, replyRoots } from "./ReplyRoots.ts"
import { compileHeaders, type CompiledHeaders } from "./ResponseHeaders.ts"

/**
 * A source's custom response: which of its rules answers a request, and with what. It determines the answer only: the
 * request was accepted and is routed, whatever the status is.
 */

const maxRules = 50
/** Bytes of UTF-8 of each body, before its placeholders are filled. */
const maxBodyBytes = 65_536
/** Placeholders in the bodies of all rules and of the fallback, as written: about ten milliseconds. */
const maxPlaceholders = 20_000

/** The request as matchers and placeholders read it. */
export interface ReplyInput extends FilterInput {
  readonly method: string
  readonly requestId: string
}

export interface CustomReply {
  /** 200 to 599. */
  readonly status: number
  /** The value of the content-type header. */
  readonly contentType: string
  /** The other headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Empty if the status allows no body. */
  readonly body: string
}

export interface CompiledCustomResponse {
  /**
   * The answer to a request. Null if the default acknowledgement is used: no rule matches and there is no
   * fallback, or the chosen body would exceed the limit of rendered templates. The latter is no error, because an error answer would make
   * the sender repeat a request that was accepted.
   *
   * Calls `input.body` at most once, and only if a rule or a placeholder reads the body.
   */
  readonly respond: (input: ReplyInput) => CustomReply | null
}

interface Reply {
  readonly status: number
  readonly contentType: ResponseContentType
  readonly body: Template<ReplyRoot>
  readonly headers: CompiledHeaders
}

const mediaTypes: Readonly<Record<ResponseContentType, string>> = {
  json: "application/json; charset=utf-8",
  text: "text/plain; charset=utf-8",
  xml: "application/xml; charset=utf-8"
}

const escapes: Readonly<Record<ResponseContentType, Escape>> = { json: jsonEscape, text: textEscape, xml: xmlEscape }

/**
 * Compiles a custom response; the `path` of an error is the place in it, like `rules[2].match.body.$regex`. Unknown members are
 * refused, because a rule with a misspelt `match` would answer every request. `isStored`: it was valid when it was written, so limits that
 * were added since do not apply. Resumable: yields after each rule and pattern.
 */
export function* compilingCustomResponse(
  written: unknown,
  isStored = false
): Resumable<Result.Result<CompiledCustomResponse, Complaint>> {
  const read = decode(CustomResponse, written, "a custom response")
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const config = read.success
  const contentType = config.content_type ?? "json"
  const rules = config.rules ?? []
  if (rules.length > maxRules) return complain("rules", `at most ${maxRules} rules are allowed`)
  const fallback =
    config.body === undefined || config.body === null
      ? Result.succeed(null)
      : compileReply({ status: 200, contentType, text: config.body, headers: {} }, "body", "headers")
  if (Result.isFailure(fallback)) return Result.fail(fallback.failure)
  const placeholders =
    placeholdersIn(config.body) + rules.reduce((sum, { response }) => sum + placeholdersIn(response?.body), 0)
  if (!isStored && placeholders > maxPlaceholders) {
    return complain("", `its bodies hold more than ${maxPlaceholders} placeholders together`)
  }
  const patterns = isStored ? PatternBounds.stored() : PatternBounds.written()
  const matchers: Array<CompiledFilter> = []
  const replies: Array<Reply> = []
  for (const [index, { enabled, match, response }] of rules.entries()) {
    yield
    const at = below("rules", index)
    const matcher = yield* compilingFilter(withoutNulls(match ?? {}), { patterns })
    if (Result.isFailure(matcher)) {
      const { message, path } = matcher.failure
      return complain(`${at}.match.${path}`, message)
    }
    const reply = compileReply(
      {
        status: response?.status ?? 200,
        contentType: response?.content_type ?? contentType,
        text: response?.body ?? "",
        headers: response?.headers ?? {}
      },
      `${at}.response.body`,
      `${at}.response.headers`
    )
    if (Result.isFailure(reply)) return Result.fail(reply.failure)
    if (enabled === false) continue
    matchers.push(matcher.success)
    replies.push(reply.success)
  }
  return Result.succeed({ respond: (input) => respond(matchers, replies, fallback.success, input) })
}

/** The same without pauses, for a newly written one. */
export const compileCustomResponse = (written: unknown): Result.Result<CompiledCustomResponse, Complaint> =>
  runToEnd(compilingCustomResponse(written))

const placeholdersIn = (text: string | null | undefined): number => {
  let count = 0
  for (let at = text?.indexOf("{{") ?? -1; at >= 0; at = text!.indexOf("{{", at + 2)) count++
  return count
}

const withoutNulls = (match: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(match).filter(([, condition]) => condition !== null))

interface Written {
  readonly status: number
  readonly contentType: ResponseContentType
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

const bodyless: ReadonlySet<number> = new Set([204, 205, 304])

const compileReply = (
  { contentType, headers, status, text }: Written,
  bodyPath: string,
  headersPath: string
): Result.Result<Reply, Complaint> =>
  Result.gen(function* () {
    if (Buffer.byteLength(text) > maxBodyBytes) return yield* complain(bodyPath, `is longer than ${maxBodyBytes} bytes`)
    if (text !== "" && bodyless.has(status)) {
      return yield* complain(bodyPath, `must be empty: a response with status ${status} has no body`)
    }
    const body = yield* Result.mapError(compileTemplate(text, replyRoots), ({ at, message }) => ({
      path: bodyPath,
      message: `${message} (at character ${at})`
    }))
    // Null does not extend a number, and x is no escape: if the text is JSON with these, it is JSON with any values.
    if (contentType === "json" && text !== "" && !isJson(body.fill("null", "x"))) {
      return yield* complain(bodyPath, 'is not valid JSON: correct it, or set content_type to "text"')
    }
    return { status, contentType, body, headers: yield* compileHeaders(headers, headersPath) }
  })

const isJson = (text: string): boolean => parseJson(text).kind === "json"

const respond = (
  matchers: ReadonlyArray<CompiledFilter>,
  replies: ReadonlyArray<Reply>,
  fallback: Reply | null,
  input: ReplyInput
): CustomReply | null => {
  let parsed: { readonly body: ReturnType<FilterInput["body"]> } | undefined
  const body = () => (parsed ??= { body: input.body() }).body
  const matched = firstPassing(matchers, {
    method: input.method,
    headers: input.headers,
    path: input.path,
    get query() {
      return input.query
    },
    body
  })
  const reply = replies[matched] ?? fallback
  if (reply === null) return null
  const read = (root: ReplyRoot): unknown => {
    if (root === "body") return body()
    return root === "request" ? { id: input.requestId } : input[root]
  }
  const text = reply.body.render(read, escapes[reply.contentType])
  const headers = reply.headers(read)
  if (text === null || headers === null) return null
  return { status: reply.status, contentType: mediaTypes[reply.contentType], headers, body: text }
}
