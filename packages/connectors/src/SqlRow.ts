import { Effect, Schema } from "effect"
import { isUtf8 } from "node:buffer"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import { maxParsedBytes } from "@tidegate/json/LargeJson"
import { decodedBody } from "@tidegate/model/ContentCoding"
import type { Message } from "@tidegate/model/Message"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { AttemptFacts } from "./Connector.ts"
import { SessionFailure } from "./Failure.ts"
import { type FieldErrors, text } from "./Settings.ts"

/** What an event becomes in a table, and the settings that name its columns. */

const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const notIdentifier = "must be a name of at most 63 letters, digits and underscores that begins with no digit"
export const Identifier = (description: string) =>
  text.annotate({ description }).check(Schema.isPattern(identifier, { message: notIdentifier }))

export const notDatabase = "must be 1 to 63 characters, none of them a control character"
export const database = /^\P{Cc}{1,63}$/u

export interface Columns {
  readonly payload_column: string
  readonly event_id_column: string | null
  readonly metadata_column: string | null
  readonly delivered_at_column: string | null
  readonly conflict_mode: string
}

export const faultsOf = (settings: Columns): FieldErrors => {
  const columns = (["payload_column", "event_id_column", "metadata_column", "delivered_at_column"] as const).flatMap(
    (name) => (settings[name] === null ? [] : [{ name, column: settings[name] }])
  )
  const twice = columns.filter(({ column }, i) => columns.findIndex((other) => other.column === column) < i)
  return [
    ...twice.map(({ name }) => ({ path: `config.${name}`, message: "must be a column of its own" })),
    ...(settings.conflict_mode === "IGNORE" && settings.event_id_column === null
      ? [{ path: "config.event_id_column", message: "is required with conflict_mode IGNORE" }]
      : [])
  ]
}

/** A larger body is not parsed, but sent unchanged: the server refuses it if it is not JSON. */
const isLarge = ({ length }: Uint8Array): boolean => length > maxParsedBytes

/** A large body that does not match is refused here: most plain texts are detected at once. */
const beginsAsJson = /^\s*(?:["[{\dtfn-]|$)/

/** The failure of a large body that is not JSON: encoding it as a text would block the event loop for too long. */
export const tooLong = new SessionFailure({
  code: "REQUEST_TOO_LARGE",
  message: "the body is not JSON, and too long to be stored as a text",
  final: true,
  broken: false
})

/**
 * A body as JSON text: unchanged if it is JSON; else as a JSON string, with zero bytes replaced, because columns of PostgreSQL cannot hold them.
 * A body that is too large to parse is sent unchanged, and the server checks it.
 */
const jsonOf = (body: Uint8Array): string | SessionFailure => {
  if (body.length === 0) return "null"
  if (isLarge(body) && !beginsAsJson.test(utf8(body.subarray(0, 256)))) return tooLong
  if (isLarge(body) || parseJson(body).kind !== "invalid") return utf8(body)
  return JSON.stringify(utf8(body).replaceAll("\0", "\ufffd"))
}

/** The bytes cannot be stored as text without changing them. */
const unreadable = new SessionFailure({
  code: "REQUEST_TOO_LARGE",
  message: "the body is compressed in a way that is not known, or has more than 1 MiB once it is not",
  final: true,
  broken: false
})

/** The decompressed body: a column would otherwise keep a text of the compressed bytes, which cannot be restored. */
const plainOf = ({ body, headers }: Message): Uint8Array | SessionFailure => {
  const coding = headers["content-encoding"]
  if (coding === undefined) return body
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  // Some senders write a charset into this header, or a proxy has already decompressed the body.
  return decodedBody(bytes, coding, maxParsedBytes) ?? (isUtf8(bytes) ? body : unreadable)
}

const metadataOf = ({ headers, method, path, query }: Message, facts: AttemptFacts): string =>
  JSON.stringify({
    event_id: facts.eventId,
    request_id: facts.requestId,
    team_id: facts.teamId,
    source_id: facts.sourceId,
    source_name: facts.sourceName,
    connection_id: facts.connectionId,
    destination_id: facts.destinationId,
    webhook_id: facts.webhookId,
    attempt_number: facts.attemptNumber,
    trigger: facts.trigger,
    verified: facts.verified,
    created_at: new Date(facts.createdAt).toISOString(),
    method,
    path,
    query,
    headers
  })

export interface Row {
  /** The values of the columns that are set, in the order of `columnsOf`. */
  readonly values: ReadonlyArray<string>
  /** Whether the body was not parsed. */
  readonly isLarge: boolean
}

/** Makes the row of an event. Encoding a large row takes milliseconds, so it first waits until the event loop is free. */
export const rowOf =
  (columns: Columns) =>
  (message: Message, facts: AttemptFacts): Effect.Effect<Row, SessionFailure> =>
    Effect.gen(function* () {
      const body = plainOf(message)
      if (body instanceof SessionFailure) return yield* body
      const large = isLarge(body)
      if (large) yield* laterTurn
      const payload = jsonOf(body)
      if (payload instanceof SessionFailure) return yield* payload
      return {
        isLarge: large,
        values: [
          payload,
          ...(columns.event_id_column === null ? [] : [facts.webhookId]),
          ...(columns.metadata_column === null ? [] : [metadataOf(message, facts)])
        ]
      }
    })

export const columnsOf = ({ event_id_column, metadata_column, payload_column }: Columns): ReadonlyArray<string> =>
  [payload_column, event_id_column, metadata_column].filter((column) => column !== null)
