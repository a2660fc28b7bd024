/** The services on this machine to which the connectors deliver: one HTTP server that mocks all APIs, and a database. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { make } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { connectors, knownOrigins } from "@tidegate/connectors/Connectors"
import { authOf } from "../../packages/connectors/test/rows/Auths.ts"
import type { Answered, Written } from "../../packages/connectors/test/rows/Row.ts"
import { rowOf } from "../../packages/connectors/test/rows/Rows.ts"
import type { Postgres } from "./Postgres.ts"

/** A destination type, with a `config` that leads to its counterpart; null: there is none here. */
export interface Party {
  readonly type: string
  readonly config: object | null
  /** The answer of the counterpart, if it is an HTTP server. */
  readonly accepted: Answered
}

const token = JSON.stringify({ access_token: "a-token", token_type: "Bearer", expires_in: 3_600 })

/** An HTTP server whose answer can be set. It answers each token request with a token. */
const mock = Effect.acquireRelease(
  Effect.promise(async () => {
    let answer: Answered = { status: 200 }
    const server = createServer((request, response) => {
      request.resume()
      request.on("end", () => {
        const { body = "", headers, status } = request.url === "/token" ? { status: 200, body: token } : answer
        response.writeHead(status, { "content-type": "application/json", ...headers }).end(body)
      })
    })
    server.keepAliveTimeout = 120_000
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { origin, server, says: (next: Answered) => void (answer = next) }
  }),
  ({ server }) =>
    Effect.callback<void>((done) => {
      server.closeAllConnections()
      server.close(() => done(Effect.void))
    })
)

/** A table in a database of a server that is not the gateway's, and the number of connections that a gateway has to it. */
export const table = Effect.fnUntraced(function* (postgres: Postgres) {
  const url = new URL(yield* postgres.database("party"))
  const session = yield* make({ url: Redacted.make(url.href) })
  yield* session.query("create table received (event_id text primary key, payload jsonb)")
  // The time that a disk needs to make data durable is not a cost of the connector.
  yield* session.query("alter database party set synchronous_commit = off")
  return {
    config: {
      host: url.hostname,
      port: Number(url.port),
      database: url.pathname.slice(1),
      table: "received",
      event_id_column: "event_id",
      tls_mode: "disable"
    },
    auth: { username: url.username, password: decodeURIComponent(url.password) },
    sessions: session
      .queryValues(
        "select count(*)::int from pg_stat_activity where datname = current_database() and application_name = 'tidegate'"
      )
      .pipe(Effect.map(([row]) => Number(row?.[0])))
  }
})

/** As fast as possible: some types have a default rate limit, which is lower than the measured rate. Nobody fetches the media in messages. */
export const unpaced = { rate_limit: 1_000_000, rate_limit_period: "second" }
const media = { media_urls: ["https://93.184.216.34/a.png"] }

/** The counterparts of all destination types. `postgres`: a server that is not the gateway's. */
export const parties = Effect.fnUntraced(function* (postgres: Postgres) {
  const { origin, says } = yield* mock
  const { auth, config, sessions } = yield* table(postgres)
  /** Types that do not use HTTP. */
  const others: Readonly<Record<string, Written>> = { MOCK_API: { config: {} }, SQL_DATABASE: { auth, config } }
  return {
    says,
    sessions,
    /** Environment variables with which the gateway calls this server instead of the real APIs. */
    env: { TIDEGATE_API_ORIGINS: [...knownOrigins].map((known) => `${known}=${origin}`).join(", ") },
    all: connectors.map(({ auths, example, settings, type }): Party => {
      const { accepted, mock } = rowOf(type)
      const written = mock === null ? others[type] : mock(origin)
      if (written === undefined) return { type, config: null, accepted }
      const auth_type = written.auth_type ?? auths[0]!
      const config = {
        ...(example["config"] as object | undefined),
        ...("default" in settings["rate_limit"]! && settings["rate_limit"].default !== null ? unpaced : {}),
        ...("media_urls" in settings ? media : {}),
        ...written.config,
        auth_type,
        auth: written.auth ?? authOf(auth_type)
      }
      return { type, config, accepted }
    })
  }
})
