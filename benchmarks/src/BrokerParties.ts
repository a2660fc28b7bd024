/**
 * The brokers, databases and mail server on this machine that `--only brokers` delivers to. All of them are external programs, and are started as the
 * suites start them. If the system has a file system in memory, they keep their data there, because the time of a disk is not a cost of the gateway.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { connectors } from "@tidegate/connectors/Connectors"
import { auth } from "../../packages/foreign-databases/test/Brokering.ts"
import { isInstalled as isKafkaInstalled, ownKafka } from "../../packages/foreign-databases/test/OwnKafka.ts"
import { ownMariaDb, program as mariaDb } from "../../packages/foreign-databases/test/OwnMariaDb.ts"
import { ownNats, program as nats } from "../../packages/foreign-databases/test/OwnNats.ts"
import { ownRabbit, program as rabbitMq } from "../../packages/foreign-databases/test/OwnRabbit.ts"
import { ownRedis, program as redis } from "../../packages/foreign-databases/test/OwnRedis.ts"
import { ownSmtp } from "../../packages/foreign-databases/test/OwnSmtp.ts"
import { motoIsMissing, motoRegion, startMoto } from "../../test/support/Moto.ts"
import { table, unpaced } from "./Parties.ts"
import * as Postgres from "./Postgres.ts"

/** A party that runs. */
export interface BrokerParty {
  /** The `config` of a destination that delivers to it. */
  readonly config: object
  /** The `config` of the n-th source that subscribes to a queue that stays empty. Absent: idle subscriptions of this type are not measured. */
  readonly subscription?: (n: number) => object
}

interface Kind {
  /** The type of destinations, and of sources. */
  readonly type: string
  /** What replaces the broker. Null: it is the broker itself. */
  readonly standIn: string | null
  /** Why the program is not on this machine. Null: it is there. */
  readonly missing: string | null
  /** Whether there is a `subscription`. */
  readonly subscribes: boolean
  /** Starts it in an empty folder of its own. */
  readonly start: (home: string) => Effect.Effect<BrokerParty, { readonly message: string }, Scope.Scope>
}

const here = { host: "127.0.0.1", tls_mode: "disable" }
const byPassword = { auth_type: "DATABASE_PASSWORD", auth }

const unless = (isThere: boolean, name: string): string | null => (isThere ? null : `${name} is not on this machine`)

/** Answers like SQS, and keeps nothing. */
const sqsStandIn = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        const { Entries } = JSON.parse(Buffer.concat(parts).toString()) as {
          readonly Entries?: ReadonlyArray<{ readonly Id: string }>
        }
        const MessageId = "5fea7756-0ea4-451a-a703-a558b933e274"
        const answer =
          Entries === undefined
            ? { MessageId }
            : { Successful: Entries.map(({ Id }) => ({ Id, MessageId })), Failed: [] }
        response.writeHead(200, { "content-type": "application/x-amz-json-1.0" }).end(JSON.stringify(answer))
      })
    })
    server.keepAliveTimeout = 120_000
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return server
  }),
  (server) =>
    Effect.callback<void>((done) => {
      server.closeAllConnections()
      server.close(() => done(Effect.void))
    })
)

const queueAt = (queue_url: string, key: object): BrokerParty => ({
  config: { queue_url, region: motoRegion, auth_type: "AWS_ACCESS_KEY", auth: key }
})

const kinds: ReadonlyArray<Kind> = [
  {
    type: "RABBITMQ",
    standIn: null,
    missing: unless(rabbitMq !== undefined, "RabbitMQ"),
    subscribes: true,
    start: () =>
      Effect.map(ownRabbit, ({ port }) => {
        const place = { ...here, port, vhost: "shop" }
        return {
          config: { ...place, exchange: "orders", routing_key: "order.paid", ...byPassword },
          subscription: () => ({ subscription: { ...place, queue: "read classic" }, auth })
        }
      })
  },
  {
    type: "NATS_JETSTREAM",
    standIn: null,
    missing: unless(nats !== undefined, "NATS"),
    subscribes: true,
    start: Effect.fnUntraced(function* () {
      const token = auth.password
      const { consumer, port, stream } = yield* ownNats(`authorization { token: "${token}" }`, { token })
      yield* Effect.promise(async () => {
        await stream("ORDERS", { subjects: ["orders.>"], storage: "file" })
        await stream("IDLE", { subjects: ["idle.>"], storage: "file" })
        await consumer("IDLE", "tidegate")
      })
      const signIn = { auth_type: "NATS_TOKEN", auth: { token } }
      return {
        config: { ...here, port, subject: "orders.paid", stream: "ORDERS", ...signIn },
        subscription: () => ({ subscription: { ...here, port, stream: "IDLE", consumer: "tidegate" }, ...signIn })
      }
    })
  },
  {
    type: "REDIS_STREAM",
    standIn: null,
    missing: unless(redis !== undefined, "Redis"),
    subscribes: true,
    start: () =>
      Effect.map(ownRedis, ({ port }) => ({
        config: { ...here, port, stream: "orders:paid", ...byPassword },
        subscription: (n: number) => ({
          subscription: { ...here, port, stream: "idle", create_group: "oldest", consumer: `consumer-${n}` },
          auth_type: "BASIC_AUTH",
          auth: { username: "default", password: "owner" }
        })
      }))
  },
  {
    type: "MYSQL",
    standIn: null,
    missing: unless(mariaDb !== undefined, "MariaDB"),
    subscribes: false,
    start: Effect.fnUntraced(function* () {
      const { owner, port } = yield* ownMariaDb
      yield* Effect.promise(() =>
        owner("create table shop.orders (event_id varchar(64) not null unique, payload json not null)")
      )
      const columns = { database: "shop", table: "orders", event_id_column: "event_id" }
      return { config: { ...here, port, ...columns, ...byPassword } }
    })
  },
  {
    type: "SQL_DATABASE",
    standIn: null,
    missing: null,
    subscribes: false,
    start: Effect.fnUntraced(function* (home: string) {
      const sql = yield* table(yield* Postgres.start(home))
      return { config: { ...sql.config, auth_type: "DATABASE_PASSWORD", auth: sql.auth } }
    })
  },
  {
    type: "SMTP",
    standIn: "the package smtp-server",
    missing: null,
    subscribes: false,
    start: () =>
      Effect.map(ownSmtp({ authOptional: true }), ({ port }) => {
        const letter = { from: "orders@example.com", to: "ops@example.com" }
        return { config: { ...here, port, ...letter, ...unpaced, auth_type: "NO_AUTH" } }
      })
  },
  {
    type: "KAFKA",
    standIn: null,
    missing: isKafkaInstalled ? null : "KAFKA_HOME is not set, or there is no Java",
    subscribes: false,
    start: Effect.fnUntraced(function* () {
      const { port, topic } = yield* ownKafka
      yield* Effect.promise(() => topic("orders", 3))
      const place = { bootstrap_servers: `127.0.0.1:${port}`, topic: "orders", tls_mode: "disable" }
      return { config: { ...place, ...byPassword } }
    })
  },
  {
    type: "AWS_SQS",
    standIn: motoIsMissing === null ? "moto" : "an HTTP server that answers like SQS",
    missing: null,
    subscribes: false,
    start: Effect.fnUntraced(function* () {
      if (motoIsMissing !== null) {
        const { port } = (yield* sqsStandIn).address() as AddressInfo
        const key = { access_key_id: "AKIA0000000000000000", secret_access_key: "secret" }
        return queueAt(`http://127.0.0.1:${port}/123456789012/orders`, key)
      }
      const moto = yield* Effect.acquireRelease(
        Effect.promise(() => startMoto()),
        ({ close }) => Effect.promise(() => close())
      )
      return queueAt(yield* Effect.promise(() => moto.queue("orders")), moto.key)
    })
  }
]

/** A type of destinations, with the party that it delivers to. */
export interface StartedParty extends BrokerParty {
  readonly type: string
  readonly standIn: string | null
  /** Whether the type delivers several events in one call. */
  readonly batches: boolean
}

/** Starts the wanted programs that are on this machine. `missing`: why the other wanted ones are not measured, by type. */
export const startParties = Effect.fnUntraced(function* (
  home: string,
  isWanted: (kind: Pick<Kind, "subscribes">) => boolean = () => true
) {
  const wanted = kinds.filter(isWanted)
  const missing = new Map(wanted.flatMap(({ missing, type }) => (missing === null ? [] : [[type, missing] as const])))
  const started = yield* Effect.forEach(
    wanted.filter(({ type }) => !missing.has(type)),
    ({ standIn, start, type }) =>
      Effect.map(start(join(home, type)), (party): StartedParty => {
        const { settings } = connectors.find((connector) => connector.type === type)!
        return { ...party, type, standIn, batches: "batch" in settings }
      })
  )
  return { started, missing }
})
