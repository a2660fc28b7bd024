import { Effect, Schema } from "effect"
import { isUtf8 } from "node:buffer"
import * as Characters from "@tidegate/model/Characters"
import { decodedBody } from "@tidegate/model/ContentCoding"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import { maxParsedBytes } from "@tidegate/json/LargeJson"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { Message } from "@tidegate/model/Message"
import { OneOf } from "@tidegate/model/AuthSettings"
import { type Answer, type AttemptFacts, connector, payloadPerStep, type Session } from "./Connector.ts"
import { SessionFailure } from "./Failure.ts"
import {
  inUrl,
  isAddress,
  leadsToServer,
  serverAddress,
  serverConnection,
  serverPlace,
  serverSignIn
} from "./Server.ts"
import { type Config, concurrency, type FieldErrors, needed, pacing, setting, text } from "./Settings.ts"
import { type SqlRefusal, SqlServers } from "./SqlServers.ts"
import { failureOf } from "./SqlState.ts"

/** Connections, and so concurrent rows, of a destination: the default and the maximum. */
const usualConnections = 4
const maxConnections = 20

const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const notIdentifier = "must be a name of at most 63 letters, digits and underscores that begins with no digit"
const Identifier = (description: string) =>
  text.annotate({ description }).check(Schema.isPattern(identifier, { message: notIdentifier }))

const notDatabase = "must be 1 to 63 characters, none of them a control character"
const database = /^\P{Cc}{1,63}$/u

const endpoint = /^(?:\[([^\]]*)\]|([^/:[\]]*))(?::(\d{1,5}))?\/(.*)$/su

/** Parses `host[:port]/database`, in which an IPv6 address with a port has brackets; null if it is invalid. */
const partsOf = (written: string) => {
  const [, v6, name, digits, named = ""] = endpoint.exec(written) ?? []
  const host = v6 ?? name ?? ""
  const port = digits === undefined ? null : Number(digits)
  const isPort = port === null || (port >= 1 && port <= 65_535)
  return isPort && isAddress(host) && database.test(named) ? { host, port, database: named } : null
}

/** Copies the parts of `endpoint` to their own settings. It replaces them, because it was written for all three. */
const spelledOut = ({ endpoint, ...config }: Config): Config => ({
  ...config,
  ...(typeof endpoint === "string" ? partsOf(endpoint) : null)
})

interface Columns {
  readonly payload_column: string
  readonly event_id_column: string | null
  readonly metadata_column: string | null
  readonly delivered_at_column: string | null
  readonly conflict_mode: string
}

const faultsOf = (settings: Columns): FieldErrors => {
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
const tooLong = new SessionFailure({
  code: "REQUEST_TOO_LARGE",
  message: "the body is not JSON, and too long to be stored as a text",
  final: true,
  broken: false
})

/**
 * A body as JSON text: unchanged if it is JSON; else as a JSON string, with zero bytes replaced, because no column of PostgreSQL can hold them.
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

/** Whether a server reports that a large body is not JSON. The report quotes the invalid word, so it may be too long to read. */
const isNotJson = (failure: SqlRefusal | SessionFailure): boolean =>
  failure._tag === "SqlRefusal" ? failure.state === "22P02" : failure.code === "RESPONSE_TOO_LARGE"

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

const answerOf = (rows: number): Answer => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify({ inserted: rows })),
  bodyTruncated: false
})

/** Inserts rows into a table of a PostgreSQL database. */
export const sqlDatabase = connector({
  type: "SQL_DATABASE",
  description: "Inserts a row into a table of a PostgreSQL database.",
  settings: {
    ...serverAddress(5_432, "db.example.com"),
    database: needed(
      text.annotate({ examples: ["shop"] }).check(Schema.isPattern(database, { message: notDatabase })),
      "the name of the database"
    ),
    schema: setting(Identifier("The table's schema"), "public"),
    table: needed(Identifier("Upper and lower case count, as in the columns"), "the name of the table"),
    payload_column: setting(
      Identifier("Of type jsonb: gets the body; one that is not JSON as a JSON string"),
      "payload"
    ),
    event_id_column: setting(
      Identifier("Of type text: gets the event's id, the same in every attempt and retry"),
      null
    ),
    metadata_column: setting(
      Identifier("Of type jsonb: gets the ids, the method, the path, the query and the headers"),
      null
    ),
    delivered_at_column: setting(Identifier("Of type timestamptz: gets the server's time"), null),
    conflict_mode: setting(
      OneOf(["ERROR", "IGNORE"]).annotate({
        description:
          "A row that is there already: a failure, or as good as inserted. IGNORE wants event_id_column, and a UNIQUE constraint on it"
      }),
      "ERROR"
    ),
    ...serverConnection,
    ...pacing,
    ...concurrency
  },
  none: {
    endpoint: text.annotate({ description: "host[:port]/database: another way to write the three" }).check(
      Characters.upTo(340).abort(),
      Schema.makeFilter((written: string) => partsOf(written) !== null || "must be host[:port]/database", {
        toJsonSchema: () => ({ pattern: String.raw`^.+\/.+$`, maxLength: 340 })
      })
    )
  },
  aliases: spelledOut,
  check: faultsOf,
  auths: ["DATABASE_PASSWORD"],
  leadsTo: leadsToServer,
  credentials: "mask",
  carriesPath: ({ metadata_column }) => typeof metadata_column === "string",
  perStep: { ...payloadPerStep("What the payload_column gets"), address: serverPlace },
  example: {
    name: "orders-table",
    type: "SQL_DATABASE",
    config: {
      host: "db.example.com",
      database: "shop",
      table: "orders",
      event_id_column: "event_id",
      conflict_mode: "IGNORE",
      auth_type: "DATABASE_PASSWORD",
      auth: { username: "tidegate", password: "a-password" }
    }
  },
  open: (config, { settings }) => {
    const signIn = serverSignIn(config, settings)
    const { delivered_at_column, event_id_column, metadata_column } = config
    const connections = Math.min(config.max_concurrency ?? usualConnections, maxConnections)
    const table = {
      ...signIn,
      database: config.database,
      connections,
      schema: config.schema,
      table: config.table,
      columns: [config.payload_column, event_id_column, metadata_column].filter((column) => column !== null),
      timed: delivered_at_column === null ? [] : [delivered_at_column],
      unique: config.conflict_mode === "IGNORE" ? event_id_column : null
    }
    const rowOf = (message: Message, facts: AttemptFacts): ReadonlyArray<string> | SessionFailure => {
      const payload = jsonOf(message.body)
      if (payload instanceof SessionFailure) return payload
      return [
        payload,
        ...(event_id_column === null ? [] : [facts.webhookId]),
        ...(metadata_column === null ? [] : [metadataOf(message, facts)])
      ]
    }
    return {
      kind: "session",
      method: "INSERT",
      shownUrl: `postgresql://${inUrl(config)}/${encodeURIComponent(config.database)}`,
      atOnce: connections,
      connect: Effect.gen(function* () {
        const insert = yield* (yield* SqlServers).open(table)
        const send: Session["send"] = Effect.fnUntraced(function* (message, facts, mayStart) {
          const body = plainOf(message)
          if (body instanceof SessionFailure) return yield* body
          const large = isLarge(body)
          // Each large row takes milliseconds to encode.
          if (large) yield* laterTurn
          const row = rowOf({ ...message, body }, facts)
          if (row instanceof SessionFailure) return yield* row
          return yield* insert(row, mayStart).pipe(
            Effect.map(answerOf),
            Effect.catch((failure) => {
              if (large && isNotJson(failure)) return Effect.fail(tooLong)
              return Effect.fail(failure._tag === "SqlRefusal" ? failureOf(failure, signIn.password) : failure)
            })
          )
        })
        return { send }
      })
    }
  }
})
