import { Effect, Schema, SchemaAST, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { inSlices, laterTurn, yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import type { Resumable } from "@tidegate/runtime/Resumable"

/**
 * Answers of megabytes, with data of strangers. All calls of a process share one event loop, so such answers are encoded in
 * parts, within the event-loop budget, and sent in pieces.
 */

type Endpoint = HttpApiEndpoint.Constraint
type Answer = HttpServerResponse.HttpServerResponse
type Encode = (answer: unknown) => Effect.Effect<unknown, Schema.SchemaError>

/** Other calls wait for one piece of a long answer, not for the whole answer. */
const pieceBytes = 128 * 1024

const answerOf = (endpoint: Endpoint): Schema.Top => {
  const [answer] = (endpoint as Endpoint & { readonly success: ReadonlySet<Schema.Top> }).success
  return answer!
}

/** What `make` returns for an endpoint. It is made once. */
const oncePerEndpoint = <A>(make: (endpoint: Endpoint) => A): ((endpoint: Endpoint) => A) => {
  const made = new WeakMap<Endpoint, A>()
  return (endpoint) => {
    const known = made.get(endpoint)
    if (known !== undefined) return known
    const one = make(endpoint)
    made.set(endpoint, one)
    return one
  }
}

const encoding = (schema: Schema.Top): Encode => Schema.encodeUnknownEffect(schema as Schema.Codec<unknown>)

const encoderOf = oncePerEndpoint((endpoint) => encoding(answerOf(endpoint)))

/** The encoder of one record of a page. With the encoder of the page, each record would cost twice as much. */
const recordEncoderOf = oncePerEndpoint((endpoint) => {
  const { ast } = answerOf(endpoint)
  const models = SchemaAST.isObjects(ast) ? ast.propertySignatures.find(({ name }) => name === "models")?.type : null
  if (models == null || !SchemaAST.isArrays(models)) throw new Error("the answer of the endpoint is not a page")
  return encoding(Schema.make(models.rest[0]!))
})

/** A page: its records are `models`. */
interface Page {
  readonly models: ReadonlyArray<unknown>
}

/** A handler that returns a page: its records are encoded one after the other. */
export const listing =
  <Call extends { readonly endpoint: Endpoint }, A extends Page, E, R>(
    handler: (call: Call) => Effect.Effect<A, E, R>
  ) =>
  (call: Call): Effect.Effect<Answer, E, R> =>
    Effect.flatMap(handler(call), (page) => Effect.orDie(encodingPage(call.endpoint, page)))

const encodingPage = Effect.fnUntraced(function* (endpoint: Endpoint, page: Page) {
  const encode = recordEncoderOf(endpoint)
  const { models: _, ...rest } = (yield* encoderOf(endpoint)({ ...page, models: [] })) as Page
  const texts = [`${JSON.stringify(rest).slice(0, -1)},"models":[`]
  for (const model of page.models) {
    const since = performance.now()
    const text = JSON.stringify(yield* encode(model))
    texts.push(texts.length === 1 ? text : `,${text}`)
    yield* yieldIfSpent(since)
  }
  texts.push("]}")
  return yield* sending(texts)
})

/** How deep an answer that is no page is divided into parts. It is three because the parts of a trace are in lists by event. */
const partsDepth = 3

/** A handler that returns a large answer that is no page. */
export const answeringInParts =
  <Call extends { readonly endpoint: Endpoint }, A, E, R>(handler: (call: Call) => Effect.Effect<A, E, R>) =>
  (call: Call): Effect.Effect<Answer, E, R> =>
    Effect.flatMap(handler(call), (result) =>
      Effect.orDie(encoderOf(call.endpoint)(result)).pipe(
        Effect.flatMap((encoded) => inSlices(writing(encoded, partsDepth))),
        Effect.flatMap(sending)
      )
    )

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** Writes the same text as `JSON.stringify`, in parts. */
function* writing(value: unknown, depth: number): Resumable<ReadonlyArray<string>> {
  if (depth === 0 || !(isPlain(value) || Array.isArray(value))) return [JSON.stringify(value)]
  const texts: Array<string> = []
  const members: ReadonlyArray<readonly [string, unknown]> = Array.isArray(value)
    ? value.map((element: unknown) => ["", element ?? null])
    : Object.entries(value).filter(([, member]) => member !== undefined)
  for (const [name, member] of members) {
    const ahead = Array.isArray(value) ? "" : `${JSON.stringify(name)}:`
    const [first, ...others] = yield* writing(member, depth - 1)
    texts.push(`${texts.length === 0 ? "" : ","}${ahead}${first}`, ...others)
    yield
  }
  return Array.isArray(value) ? ["[", ...texts, "]"] : ["{", ...texts, "}"]
}

const contentType = "application/json"

/** The answer with that text. */
const sending = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
  if (texts.reduce((sum, { length }) => sum + length, 0) <= pieceBytes) {
    return HttpServerResponse.text(texts.join(""), { contentType })
  }
  const pieces: Array<Uint8Array> = []
  for (const text of texts) {
    const since = performance.now()
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes))
    yield* yieldIfSpent(since)
  }
  const contentLength = pieces.reduce((sum, { length }) => sum + length, 0)
  return HttpServerResponse.stream(
    Stream.mapEffect(Stream.rechunk(Stream.fromIterable(pieces), 1), (piece) => Effect.as(laterTurn, piece)),
    { contentType, contentLength }
  )
})
