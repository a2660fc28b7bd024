import { Effect, Layer, Logger, Redacted, Result } from "effect"
import { SqlClient } from "effect/sql"
import { idTime, newId, type Prefix, prefixes } from "@tidegate/model/Ids"
import { Ingress } from "@tidegate/model/Ingress"
import type { ConnectionFields } from "@tidegate/resources/Connection"
import { Connections } from "../src/control/Connections.ts"
import * as Database from "../src/Database.ts"
import type { DestinationFields } from "@tidegate/resources/Destination"
import { Destinations } from "../src/control/Destinations.ts"
import { migrate } from "../src/Migrations.ts"
import { parseSecretKeys, Secrets } from "../src/secrets/Secrets.ts"
import type { SourceFields } from "@tidegate/resources/Source"
import { Sources } from "../src/control/Sources.ts"
import type { Command, Concerned } from "../src/control/Store.ts"
import { freshDatabase } from "../../../test/postgres.ts"
import { DatabaseLink, type LinkOptions } from "../../../test/support/DatabaseLink.ts"

/** The stores over a migrated database of the suite's own, with two teams. */
export const team = "tm_one"
export const otherTeam = "tm_two"
export const ingress = "http://ingress.test/e"

interface Pools {
  readonly connections: number
  /** Leads all connections through a link, for example to count statements. */
  readonly link?: LinkOptions
}

const linked = (url: Redacted.Redacted, options: LinkOptions) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => DatabaseLink.to(Redacted.value(url), options)),
      (link) => Effect.promise(() => link.close())
    ),
    (link) => Redacted.make(link.url)
  )

const databaseOf = ({ connections, link }: Pools) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const url = yield* freshDatabase
      return Database.layer({
        url: link === undefined ? url : yield* linked(url, link),
        hotConnections: 1,
        connections
      })
    })
  )

const schema = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* migrate
    const sql = yield* SqlClient.SqlClient
    yield* sql`insert into teams (id, name) values (${team}, 'One'), (${otherTeam}, 'Two')`
  })
).pipe(Layer.orDie)

const secrets = Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("ab".repeat(32))) })

export const layerOf = (pools: Pools) =>
  Connections.layer.pipe(
    Layer.provideMerge(Layer.merge(Sources.layer, Destinations.layer)),
    Layer.provideMerge(schema),
    Layer.provideMerge(Layer.mergeAll(databaseOf(pools), secrets, Ingress.layer(ingress.slice(0, -"/e".length)))),
    // What is logged on purpose would hide what is not.
    Layer.provideMerge(Logger.layer([]))
  )

export const layer = layerOf({ connections: 6 })

const fresh = (prefix: Prefix): string => newId(prefix, Date.now())
let count = 0
/** A name that no other test uses. */
export const unique = (text: string): string => `${text}-${++count}`

export const sourceFields = (fields: Partial<SourceFields> = {}): SourceFields => ({
  name: unique("source"),
  description: null,
  type: "WEBHOOK",
  disabled: false,
  slug: null,
  config: {
    auth_type: null,
    allowed_http_methods: ["POST"],
    custom_response: null,
    mode: "webhook",
    proxy: null,
    chat_defer_ephemeral: false,
    rate_limit: null,
    rate_limit_period: null
  },
  auth: {},
  ...fields
})

export const destinationFields = (fields: Partial<DestinationFields> = {}): DestinationFields => ({
  name: unique("destination"),
  description: null,
  type: "HTTP",
  config: {
    url: "https://target.test/hook",
    http_method: null,
    path_forwarding_disabled: false,
    rate_limit: null,
    rate_limit_period: "second",
    max_concurrency: null,
    auth_type: null
  },
  auth: {},
  ...fields
})

export const connectionFields = (
  fields: Pick<ConnectionFields, "source_id" | "destination_id"> & Partial<ConnectionFields>
): ConnectionFields => ({
  name: unique("connection"),
  description: null,
  rules: [],
  ordering: null,
  disabled_at: null,
  paused_at: null,
  ...fields
})

export const createSource = (fields?: Partial<SourceFields>) =>
  Effect.flatMap(Sources, (sources) => sources.create(team, fresh(prefixes.source), sourceFields(fields)))

export const createDestination = (fields?: Partial<DestinationFields>) =>
  Effect.flatMap(Destinations, (destinations) =>
    destinations.create(team, fresh(prefixes.destination), destinationFields(fields))
  )

/** A connection, with the source and destination that are not given. */
export const createConnection = Effect.fnUntraced(function* (fields: Partial<ConnectionFields> = {}) {
  const source_id = fields.source_id ?? (yield* createSource()).id
  const destination_id = fields.destination_id ?? (yield* createDestination()).id
  const connections = yield* Connections
  return yield* connections.create(
    team,
    fresh(prefixes.connection),
    connectionFields({ ...fields, source_id, destination_id })
  )
})

/** A command's answer, with whom it said that it concerns: the ids of those whose events it cancels. */
export const concernedBy = Effect.fnUntraced(function* <A, E, R>(run: (command: Command) => Effect.Effect<A, E, R>) {
  let concerned: Concerned = { destinations: [], cancelled: [] }
  const record = yield* run({
    afterCommit: (all) =>
      Effect.sync(() => {
        concerned = all
      })
  })
  const cancelled = concerned.cancelled.flatMap((of) => Object.values(of))
  return { record, destinations: concerned.destinations, cancelled }
})

/** The version that ingress routes by. */
export const versionOf = Effect.fnUntraced(function* (sourceId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ version: number }>`select version::int4 as version from sources where id = ${sourceId}`
  return row?.version
})

/** A stored event, waiting in its queue when it is pending. */
export const insertEvent = Effect.fnUntraced(function* (
  connection: { readonly id: string; readonly source_id: string; readonly destination_id: string },
  fields: {
    readonly state?: string
    readonly createdAt?: Date
    readonly dueAt?: Date
    readonly body?: string | null
    readonly rootEventId?: string
  } = {}
) {
  const sql = yield* SqlClient.SqlClient
  const { body = "{}", rootEventId = null, state = "PENDING" } = fields
  // A retry is younger than its event: ids of one millisecond have no order.
  const least = rootEventId === null ? 0 : idTime(rootEventId)! + 1
  const { createdAt = new Date(Math.max(Date.now(), least)) } = fields
  const { dueAt = createdAt } = fields
  const id = newId(prefixes.event, createdAt.getTime())
  const requestId = newId(prefixes.request, createdAt.getTime())
  yield* sql`
    insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size,
      events_count, ignored_count, ingested_at, created_at, updated_at)
    values (${requestId}, ${team}, ${connection.source_id}, 'accepted', false, 'POST', '/', '', '{}',
      ${body === null ? null : Buffer.from(body)}, ${body?.length ?? 0}, 1, 0, ${createdAt}, ${createdAt}, ${createdAt})`
  yield* sql`
    insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed, trigger, due_at,
      root_event_id, ingested_at, created_at, updated_at)
    values (${id}, ${team}, ${requestId}, ${connection.id}, ${connection.source_id}, ${connection.destination_id},
      ${state}, ${state === "FAILED"}, 'INITIAL', ${dueAt}, ${rootEventId}, ${createdAt}, ${createdAt}, ${createdAt})`
  if (state === "PENDING") {
    yield* sql`
      insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
      values (${id}, ${team}, 1, ${connection.destination_id}, ${connection.id}, ${dueAt})`
  }
  return id
})
