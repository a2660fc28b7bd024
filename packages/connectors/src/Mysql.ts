import { Effect, Schema } from "effect"
import { OneOf } from "@tidegate/model/AuthSettings"
import { batching, batchLimits, faultsOfBatches } from "./Batches.ts"
import { lasting, type Meaning, passing, refusalsOf } from "./BrokerSession.ts"
import { type BrokerRefusal, Brokers } from "./Brokers.ts"
import { connector, payloadPerStep } from "./Connector.ts"
import type { SessionFailure } from "./Failure.ts"
import { inUrl, leadsToServer, serverAddress, serverConnection, serverPlace, serverSignIn } from "./Server.ts"
import { needed, pacing, setting, text } from "./Settings.ts"
import { insertingSession, largestStatement } from "./SqlBatch.ts"
import { columnsOf, database, faultsOf, Identifier, notDatabase, rowOf } from "./SqlRow.ts"

/** Not final, because somebody may repair the server while retries last. */
const signIn = passing("the server does not let the destination in", "AUTH_REJECTED")
const tooMuch = passing("the server has no room", "DB_UNAVAILABLE")
const tooLarge = lasting("the row is larger than the server takes")
const constraint: Meaning = {
  code: "DB_CONSTRAINT",
  final: true,
  what: "a constraint of the table does not allow the row"
}
const collided = passing("the row collided with what others write")

/** By the number of the error, or by the class of its SQLSTATE. `MECHANISM` and `SIZE` are the client's own refusals. */
const meanings: Readonly<Record<string, Meaning>> = {
  MECHANISM: passing("the server wants a sign-in that is not known here", "AUTH_REJECTED"),
  SIZE: tooLarge,
  "1040": tooMuch,
  "1041": tooMuch,
  "1044": signIn,
  "1045": signIn,
  "1049": passing("there is no such database"),
  "1053": passing("the server is going down", "DB_UNAVAILABLE"),
  "1054": passing("the table has no such column"),
  "1062": { ...constraint, what: "there is such a row already" },
  "1114": tooMuch,
  "1129": signIn,
  "1130": signIn,
  "1142": { ...signIn, what: "the user may not write to the table" },
  "1143": { ...signIn, what: "the user may not write to a column" },
  "1146": passing("there is no such table"),
  "1153": tooLarge,
  "1203": tooMuch,
  "1205": { code: "TIMEOUT", final: false, what: "the table stayed locked" },
  "1213": collided,
  "1226": tooMuch,
  "1290": passing("the server takes no writes now"),
  "1366": { code: "INVALID_CHARACTER", final: true, what: "the event holds a character that the column cannot" },
  "1452": { ...constraint, final: false, what: "the row refers to one that is not there" },
  "1836": passing("the server takes no writes now"),
  "3140": lasting("the body is no JSON, which the column wants"),
  "3159": { ...signIn, what: "the server lets nobody in without TLS" },
  "3819": constraint,
  "4025": constraint,
  // The classes of SQLSTATE.
  "08": passing("the server has ended the connection", "DB_UNAVAILABLE"),
  "21": lasting("the statement does not fit the table"),
  "22": lasting("the column does not take the value"),
  "23": constraint,
  "25": passing("the server takes no writes now"),
  "28": signIn,
  "40": collided,
  "42": lasting("the statement does not fit the table")
}

/** Inserts rows into a table of a MySQL or MariaDB database. */
export const mysql = connector({
  type: "MYSQL",
  name: "MySQL and MariaDB",
  description: "Inserts a row into a table of a MySQL or MariaDB database.",
  settings: {
    ...serverAddress(3_306, "db.example.com"),
    database: needed(
      text.annotate({ examples: ["shop"] }).check(Schema.isPattern(database, { message: notDatabase })),
      "the name of the database"
    ),
    table: needed(Identifier("The table"), "the name of the table"),
    payload_column: setting(
      Identifier("Of type json: gets the body; one that is not JSON as a JSON string"),
      "payload"
    ),
    event_id_column: setting(
      Identifier("Of type varchar: gets the event's id, the same in every attempt and retry"),
      null
    ),
    metadata_column: setting(
      Identifier("Of type json: gets the ids, the method, the path, the query and the headers"),
      null
    ),
    delivered_at_column: setting(Identifier("Of type datetime: gets the server's time in UTC"), null),
    conflict_mode: setting(
      OneOf(["ERROR", "IGNORE"]).annotate({
        description:
          "A row that is there already, by any UNIQUE key: a failure, or as good as inserted. IGNORE wants event_id_column, and a UNIQUE key on it"
      }),
      "ERROR"
    ),
    ...serverConnection,
    ...batching,
    ...pacing
  },
  check: ({ batch, ...columns }) => [
    ...faultsOf(columns),
    ...faultsOfBatches({ batch, max_concurrency: null }, largestStatement)
  ],
  auths: ["DATABASE_PASSWORD"],
  leadsTo: leadsToServer,
  credentials: "mask",
  carriesPath: ({ metadata_column }) => typeof metadata_column === "string",
  perStep: { ...payloadPerStep("What the payload_column gets"), address: serverPlace },
  example: {
    name: "orders-table",
    type: "MYSQL",
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
    const limits = batchLimits({ batch: config.batch, max_concurrency: null }, largestStatement)
    const signedIn = serverSignIn(config, settings)
    const refusalOf = refusalsOf({
      meanings,
      // `{number} {SQLSTATE}`.
      classOf: (code) => {
        const [number = "", state = ""] = code.split(" ")
        return Object.hasOwn(meanings, number) ? number : state.slice(0, 2)
      },
      secrets: [signedIn.password]
    })
    return {
      kind: "session",
      method: "INSERT",
      shownUrl: `mysql://${inUrl(config)}/${encodeURIComponent(config.database)}`,
      // A connection can have only one statement under way. Meanwhile, rows gather for the next statement.
      atOnce: limits === null ? 1 : null,
      connect: Effect.gen(function* () {
        const publish = yield* (yield* Brokers).open("mysql", {
          ...signedIn,
          database: config.database,
          table: config.table,
          columns: columnsOf(config),
          timed: config.delivered_at_column,
          ignoresDuplicates: config.conflict_mode === "IGNORE"
        })
        return yield* insertingSession<BrokerRefusal | SessionFailure>({
          limits,
          rowOf: rowOf(config),
          insert: (rows, mayStart) => Effect.map(publish({ rows: rows.map(({ values }) => values) }, mayStart), Number),
          judge: (error) => {
            if (error._tag !== "BrokerRefusal") return { failure: error, isOfRow: false }
            const { failure, isKnown } = refusalOf(error)
            return { failure, isOfRow: failure.final || failure.code === "DB_CONSTRAINT" || !isKnown }
          }
        })
      })
    }
  }
})
