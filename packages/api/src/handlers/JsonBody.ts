import { isUtf8 } from "node:buffer"
import { Context, Effect, Schema, type Scope, Semaphore, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { isJsonObject } from "@tidegate/json/ExactNumber"
import { visitJson } from "@tidegate/json/VisitJson"
import { GatheredBytes } from "@tidegate/runtime/GatheredBytes"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { bodyLimits, excessIn, type JsonLimits, parseJson, parsingJson } from "@tidegate/json/JsonText"
import { maxControlBody } from "@tidegate/model/BodyLimits"
import { inSlices, yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import { Handling, judgeMembers } from "../strict/Handling.ts"
import { type Found, longestPath, maxFaults } from "../strict/Unknown.ts"

/** Deeper than any of our bodies. Code that walks a value must not exhaust the stack. */
const maxLevels = 64

const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i

/**
 * Why and where a JSON value cannot be stored or written as JSON: NUL characters and lone surrogates (PostgreSQL stores neither),
 * numbers beyond the range of a double, too deep nesting. When the body is not `stored`, its texts may be any.
 */
const unstorable = (root: unknown, stored: boolean): { readonly path: string; readonly message: string } | null => {
  let fault: { readonly path: string; readonly message: string } | null = null
  visitJson(root, (value, _, place) => {
    const message = unstorableValue(value, place.level, stored)
    if (message !== null) {
      const path = place.path()
      fault = { path: place.level === maxLevels ? path.slice(0, longestPath) : path, message }
    }
    return message === null
  })
  return fault
}

const unstorableValue = (value: unknown, level: number, stored: boolean): string | null => {
  if (typeof value === "string") return stored ? unstorableText(value) : null
  if (typeof value === "number") return Number.isFinite(value) ? null : "is too large a number"
  if (typeof value !== "object" || value === null) return null
  if (level === maxLevels) return `is nested deeper than ${maxLevels} levels`
  if (!stored || Array.isArray(value)) return null
  for (const name of Object.keys(value)) {
    const message = unstorableText(name)
    if (message !== null) return `has a member whose name ${message}`
  }
  return null
}

const unstorableText = (text: string): string | null => {
  if (text.includes("\u0000")) return "contains a NUL character"
  return text.isWellFormed() ? null : "is not well-formed Unicode"
}

/**
 * A body beyond these limits is refused before it is parsed. Escapes are not limited: code in a body has many, and the body's
 * bytes are limited.
 */
const limits: JsonLimits = { ...bodyLimits, escapes: Number.POSITIVE_INFINITY }

/** For bodies of this size (bytes) and more, each pass takes turns with other long work: a pass takes as long as parsing. */
const longFrom = 64 * 1024

const largeBodies = Semaphore.makeUnsafe(8)

/**
 * A permit for a large body, held until its call is answered: such bodies are held as a whole, so their number is limited. Fails
 * closed when none becomes free: the call may be repeated, and further bodies would exhaust memory.
 */
const permit: Effect.Effect<void, GatewayError, Scope.Scope> = Effect.acquireRelease(
  largeBodies.take(1),
  () => largeBodies.release(1),
  { interruptible: true }
).pipe(
  Effect.timeoutOrElse({
    duration: "5 seconds",
    orElse: () => fail("QUEUE_UNAVAILABLE", "too many large bodies are being read; repeat the request")
  }),
  Effect.asVoid
)

/** The body of a call that was read before its handler runs; null: it is still to be read. */
export const GivenBody = Context.Reference<Buffer | null>("@tidegate/api/GivenBody", { defaultValue: () => null })

/** The whole body, of at most `largest` bytes. */
export const wholeBody = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  largest: number
): Effect.fn.Return<Buffer, GatewayError, Scope.Scope> {
  // A body that is announced as too large is refused before it is read.
  if (Number(request.headers["content-length"] ?? 0) > largest) return yield* tooLarge(largest)
  const given = yield* GivenBody
  if (given !== null) return given.length > largest ? yield* tooLarge(largest) : given
  if (Number(request.headers["content-length"] ?? largest) > maxControlBody) yield* permit
  return yield* readBytes(request, largest)
})

/** A body without its unknown members, those members as faults, and the body as it was sent. */
export interface Written extends Found {
  readonly sent: Schema.JsonObject
}

/**
 * The body of a write, of at most `largest` bytes and `values` JSON values: a JSON object that can be stored. The actor checks
 * its meaning.
 */
export const readWritten = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  largest: number = maxControlBody,
  values: number = bodyLimits.values,
  stored = true
): Effect.fn.Return<Written, GatewayError, Scope.Scope> {
  const type = request.headers["content-type"]
  if (type !== undefined && !jsonType.test(type.trim())) {
    return yield* fail("UNSUPPORTED_CONTENT_TYPE", "the body has to be JSON (content-type application/json)")
  }
  if (request.headers["content-encoding"] !== undefined && request.headers["content-encoding"] !== "identity") {
    return yield* fail("UNSUPPORTED_CONTENT_TYPE", "compressed bodies are not accepted")
  }
  const bytes = yield* wholeBody(request, largest)
  if (bytes.length === 0) return yield* fail("INVALID_JSON", "the body is empty; a JSON object is needed")
  const since = performance.now()
  if (!isUtf8(bytes)) return yield* fail("INVALID_JSON", "the body is not UTF-8")
  const isLong = bytes.length > longFrom
  if (isLong) yield* yieldIfSpent(since)
  const within = { ...limits, values }
  const parsed = isLong ? yield* inSlices(parsingJson(bytes, within)) : parseJson(bytes, within)
  if (isLong) yield* yieldIfSpent(since)
  if (parsed.kind === "invalid") return yield* fail("INVALID_JSON", "the body is not valid JSON")
  if (parsed.kind !== "json") return yield* invalid([{ path: "body", message: excessIn(parsed.kind, within) }])
  const { value } = parsed
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return yield* invalid([{ path: "body", message: "must be a JSON object" }])
  }
  const wrong = unstorable(value, stored)
  if (isLong) yield* yieldIfSpent(since)
  if (wrong !== null) return yield* invalid([{ ...wrong, path: wrong.path === "" ? "body" : wrong.path }])
  const sent = value as Schema.JsonObject
  const found = yield* judgeMembers(sent)
  if (isLong) yield* yieldIfSpent(since)
  return { ...found, sent }
})

/** The same; an unknown member is a 400. */
export const readJsonObject = (
  request: HttpServerRequest.HttpServerRequest,
  largest: number = maxControlBody,
  values: number = bodyLimits.values,
  stored = true
): Effect.Effect<Schema.JsonObject, GatewayError, Scope.Scope> =>
  Effect.flatMap(readWritten(request, largest, values, stored), ({ faults, known }) =>
    faults.length === 0 ? Effect.succeed(known) : Effect.fail(invalid(faults))
  )

/** The same for a call with an optional body: without one it is an empty object. */
export const readJsonObjectIfAny = (
  request: HttpServerRequest.HttpServerRequest,
  largest: number = maxControlBody
): Effect.Effect<Schema.JsonObject, GatewayError, Scope.Scope> => {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers
  return encoding === undefined && (length === undefined || length === "0")
    ? Effect.succeed({})
    : readJsonObject(request, largest)
}

/** A larger body is not read when the call takes none. */
const largestUnread = 64 * 1024

/**
 * Refuses a body of a call that takes none: a caller who pauses something `until` tomorrow would believe that this has an effect.
 */
export const judgeNoBody: Effect.Effect<void, GatewayError, HttpServerRequest.HttpServerRequest> = Effect.scoped(
  Effect.gen(function* () {
    const { isLenient, operation } = yield* Handling
    if (operation?.isBodyless !== true || isLenient) return
    const request = yield* HttpServerRequest.HttpServerRequest
    const { "content-length": length, "transfer-encoding": encoding } = request.headers
    if (encoding === undefined && (length === undefined || length === "0")) return
    const bytes = yield* wholeBody(request, largestUnread)
    if (bytes.length === 0) return
    const parsed = parseJson(bytes, limits)
    const value = parsed.kind === "json" ? (parsed.value as Schema.Json) : undefined
    if (value === null) return
    const faults = isJsonObject(value)
      ? Object.keys(value)
          .slice(0, maxFaults)
          .map((name) => ({ path: name.slice(0, longestPath), message: "is not known here: this call takes no body" }))
      : [{ path: "body", message: "is not taken by this call" }]
    if (faults.length > 0) yield* invalid(faults)
  })
)

const tooLarge = (largest: number): GatewayError =>
  fail("PAYLOAD_TOO_LARGE", `the body is larger than ${largest} bytes`)

/** Not with `request.arrayBuffer`: it keeps every chunk of the body, and a chunk can be one byte. */
const readBytes = (
  request: HttpServerRequest.HttpServerRequest,
  largest: number
): Effect.Effect<Buffer, GatewayError> =>
  Effect.suspend(() => {
    const gathered = new GatheredBytes(largest)
    return request.stream.pipe(
      Stream.mapError(() => fail("INVALID_JSON", "the body could not be read to its end")),
      Stream.runForEach((piece) =>
        gathered.add(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
          ? Effect.void
          : Effect.fail(tooLarge(largest))
      ),
      Effect.map(() => gathered.take())
    )
  })

/** A text member of a body. */
export const textOf = (body: Schema.JsonObject, name: string): string | null => {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  return typeof value === "string" ? value : null
}
