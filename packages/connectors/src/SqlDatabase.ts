import { Effect, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { OneOf } from "@tidegate/model/AuthSettings"
import { batching, batchLimits, faultsOfBatches } from "./Batches.ts"
import { connector, payloadPerStep } from "./Connector.ts"
import type { SessionFailure } from "./Failure.ts"
import {
  inUrl,
  isAddress,
  leadsToServer,
  serverAddress,
  serverConnection,
  serverPlace,
  serverSignIn
} from "./Server.ts"
import { type Config, concurrency, needed, pacing, setting, text } from "./Settings.ts"
import { insertingSession, largestStatement } from "./SqlBatch.ts"
import { columnsOf, database, faultsOf, Identifier, notDatabase, rowOf, tooLong } from "./SqlRow.ts"
import { type SqlRefusal, SqlServers } from "./SqlServers.ts"
import { failureOf, isOfRow } from "./SqlState.ts"

/** Connections, and so concurrent statements, of a destination: the default and the maximum. */
const usualConnections = 4
const maxConnections = 20

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

/** Whether a server reports that a large body is not JSON. The report quotes the invalid word, so it may be too long to read. */
const isNotJson = (failure: SqlRefusal | SessionFailure): boolean =>
  failure._tag === "SqlRefusal" ? failure.state === "22P02" : failure.code === "RESPONSE_TOO_LARGE"

/** Inserts rows into a table of a PostgreSQL database. */
export const sqlDatabase = connector({
  type: "SQL_DATABASE",
  name: "PostgreSQL",
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
    ...batching,
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
  check: (settings) => [...faultsOf(settings), ...faultsOfBatches(settings, largestStatement)],
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
    const { delivered_at_column, event_id_column } = config
    const limits = batchLimits(config, largestStatement)
    const rows = limits?.maxCount ?? 1
    const wanted = config.max_concurrency === null ? usualConnections : Math.ceil(config.max_concurrency / rows)
    const connections = Math.min(wanted, maxConnections)
    const table = {
      ...signIn,
      database: config.database,
      connections,
      schema: config.schema,
      table: config.table,
      columns: columnsOf(config),
      timed: delivered_at_column === null ? [] : [delivered_at_column],
      unique: config.conflict_mode === "IGNORE" ? event_id_column : null
    }
    return {
      kind: "session",
      method: "INSERT",
      shownUrl: `postgresql://${inUrl(config)}/${encodeURIComponent(config.database)}`,
      atOnce: limits === null ? connections : config.max_concurrency,
      connect: Effect.gen(function* () {
        const insert = yield* (yield* SqlServers).open(table)
        return yield* insertingSession<SqlRefusal | SessionFailure>({
          limits,
          rowOf: rowOf(config),
          insert: (rows, mayStart) =>
            insert(
              rows.map(({ values }) => values),
              mayStart
            ),
          judge: (error, [row]) => {
            if (row!.isLarge && isNotJson(error)) return { failure: tooLong, isOfRow: true }
            if (error._tag === "SqlRefusal") {
              return { failure: failureOf(error, signIn.password), isOfRow: isOfRow(error) }
            }
            // The report of one row may be too long, because it quotes the value.
            return { failure: error, isOfRow: error.code === "RESPONSE_TOO_LARGE" }
          }
        })
      })
    }
  }
})
