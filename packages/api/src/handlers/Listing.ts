import { Effect, Schema, SchemaAST, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import { inReportSteps } from "@tidegate/runtime/ReportPace"
import type { Resumable } from "@tidegate/runtime/Resumable"

/**
 * Answers of megabytes, with data of strangers. All calls of a process share one event loop, so such answers are encoded in
 * steps that give way to requests of senders, and sent in pieces.
 */

type Endpoint = HttpApiEndpoint.Constraint
type Answer = HttpServerResponse.HttpServerResponse
type Encode = (answer: unknown) => Effect.Effect<unknown, Schema.SchemaError>

/** Other calls wait for one piece of a long answer, not for the whole answer. A longer text is cut into pieces of so many bytes. */
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

/** The member of an answer that has its records. */
type Member = "models" | "series"

/** The encoder of one record of an answer. With the encoder of the answer, each record would cost twice as much. */
const recordEncoderOf = (member: Member) =>
  oncePerEndpoint((endpoint) => {
    const { ast } = answerOf(endpoint)
    const records = SchemaAST.isObjects(ast) ? ast.propertySignatures.find(({ name }) => name === member)?.type : null
    if (records == null || !SchemaAST.isArrays(records)) throw new Error(`the answer of the endpoint has no ${member}`)
    return Schema.encodeUnknownSync(Schema.make(records.rest[0]!) as Schema.Codec<unknown>)
  })

/** A handler whose answer has many records in that member: they are encoded one after the other. */
const answeringRecords = <M extends Member>(member: M) => {
  const encoderOfRecord = recordEncoderOf(member)
  return <
    Call extends { readonly endpoint: Endpoint },
    A extends { readonly [Name in M]: ReadonlyArray<unknown> },
    E,
    R
  >(
    handler: (call: Call) => Effect.Effect<A, E, R>
  ) =>
    (call: Call): Effect.Effect<Answer, E, R> =>
      Effect.flatMap(handler(call), (answer) => {
        const records: ReadonlyArray<unknown> = answer[member]
        return Effect.orDie(encoderOf(call.endpoint)({ ...answer, [member]: [] })).pipe(
          Effect.flatMap((frame) =>
            inReportSteps(writingRecords(frame as object, member, records, encoderOfRecord(call.endpoint)))
          ),
          Effect.flatMap(sending)
        )
      })
}

/** A handler that returns a page: its records are `models`. */
export const listing = answeringRecords("models")

/** A handler that returns numbers over time: its records are the buckets of `series`. */
export const answeringSeries = answeringRecords("series")

/** The text of an answer, with its records at the end. */
function* writingRecords(
  frame: object,
  member: Member,
  records: ReadonlyArray<unknown>,
  encode: (record: unknown) => unknown
): Resumable<ReadonlyArray<string>> {
  const members = Object.entries(frame).filter(([name]) => name !== member)
  const texts = [`${JSON.stringify(Object.fromEntries(members)).slice(0, -1)},"${member}":[`]
  for (const record of records) {
    const text = JSON.stringify(encode(record))
    texts.push(texts.length === 1 ? text : `,${text}`)
    yield
  }
  texts.push("]}")
  return texts
}

/** How deep an answer that is no page is divided into parts. It is three because the parts of a trace are in lists by event. */
const partsDepth = 3

/** A handler that returns a large answer that is no page. */
export const answeringInParts =
  <Call extends { readonly endpoint: Endpoint }, A, E, R>(handler: (call: Call) => Effect.Effect<A, E, R>) =>
  (call: Call): Effect.Effect<Answer, E, R> =>
    Effect.flatMap(handler(call), (result) =>
      Effect.orDie(encoderOf(call.endpoint)(result)).pipe(
        Effect.flatMap((encoded) => inReportSteps(writing(encoded, partsDepth))),
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
  const pieces = yield* inReportSteps(cutting(texts))
  const contentLength = pieces.reduce((sum, { length }) => sum + length, 0)
  return HttpServerResponse.stream(
    Stream.mapEffect(Stream.rechunk(Stream.fromIterable(pieces), 1), (piece) => Effect.as(laterTurn, piece)),
    { contentType, contentLength }
  )
})

/** The pieces of an answer. Short texts share one: each piece is sent by itself. */
function* cutting(texts: ReadonlyArray<string>): Resumable<ReadonlyArray<Uint8Array>> {
  const pieces: Array<Uint8Array> = []
  let from = 0
  let length = 0
  for (const [at, text] of texts.entries()) {
    length += text.length
    if (length < pieceBytes && at + 1 < texts.length) continue
    const bytes = Buffer.from(texts.slice(from, at + 1).join(""))
    for (let start = 0; start < bytes.length; start += pieceBytes)
      pieces.push(bytes.subarray(start, start + pieceBytes))
    from = at + 1
    length = 0
    yield
  }
  return pieces
}
