import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Result } from "effect"
import { TestRunner } from "effect/cluster"
import { FetchHttpClient, HttpClientRequest, HttpRouter, HttpServer } from "effect/http"
import { HttpApiClient, HttpApiMiddleware } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { createServer } from "node:http"
import { freshDatabase } from "../../../test/postgres.ts"
import * as ActionBehaviour from "../../entities/src/Action/ActionBehaviour.ts"
import * as BulkOperationBehaviour from "../../entities/src/BulkOperation/BulkOperationBehaviour.ts"
import { Dispatcher } from "../../entities/src/dispatch/Dispatcher.ts"
import { Lease } from "../../entities/src/Lease.ts"
import * as ConnectionBehaviour from "../../entities/src/Connection/ConnectionBehaviour.ts"
import { Cancellations } from "../../entities/src/Cancellations.ts"
import { actorOf } from "../../entities/src/Actor.ts"
import { ChannelEntity } from "../../entities/src/Channel/ChannelProtocol.ts"
import * as Coordination from "@tidegate/coordination/Coordination"
import { Egress } from "@tidegate/egress/Egress"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import * as KeyLimitBehaviour from "../../entities/src/KeyLimit/KeyLimitBehaviour.ts"
import * as FilterBehaviour from "../../entities/src/Filter/FilterBehaviour.ts"
import { IngressSender } from "@tidegate/entities/Source/IngressSender"
import * as SourceBehaviour from "../../entities/src/Source/SourceBehaviour.ts"
import * as TransformationBehaviour from "../../entities/src/Transformation/TransformationBehaviour.ts"
import * as WorkflowBehaviour from "../../entities/src/Workflow/WorkflowBehaviour.ts"
import { Ingress } from "@tidegate/model/Ingress"
import { destination } from "@tidegate/resources/Destination"
import * as Database from "@tidegate/storage/Database"
import { Destinations } from "@tidegate/storage/control/Destinations"
import { retryEvent } from "@tidegate/storage/bulk/EventRetry"
import { migrate } from "@tidegate/storage/Migrations"
import { hashToken, parseSecretKeys, Secrets } from "@tidegate/storage/secrets/Secrets"
import { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import * as Stores from "@tidegate/storage/control/Stores"
import * as FakeSandbox from "../../entities/test/FakeSandbox.ts"
import * as ApiRoutes from "../src/ApiRoutes.ts"
import { Api } from "../src/contract/Api.ts"
import { Authorization } from "../src/contract/Authorization.ts"
import { noTunnel } from "../../entities/test/NoTunnel.ts"

export const teams = {
  a: { id: "tm_a", key: "gwk_key_of_team_a" },
  b: { id: "tm_b", key: "gwk_key_of_team_b" }
} as const

/** Destinations with their real commands; their delivery queue is another suite's. */
const destinationEntity = DestinationEntity.toLayer(
  Effect.gen(function* () {
    const cancellations = yield* Cancellations
    return DestinationEntity.of({
      ...(yield* actorOf(destination, yield* Destinations, {
        settle: ({ cancelled }) => Effect.forEach(cancelled, cancellations.request, { discard: true })
      })),
      RetryEvent: ({ payload }) =>
        Effect.map(retryEvent({ ...payload, shardOf: () => 1 }), (retried) => ({
          event_id: retried.parent_event_id,
          replay_event_id: retried.id,
          retried_at: retried.created_at.toISOString()
        })),
      StartConsent: () => Effect.die("no consents here"),
      EndConsent: () => Effect.die("no consents here"),
      Deliver: () => Effect.void,
      Wake: () => Effect.void,
      Reload: () => Effect.void,
      Reread: () => Effect.void,
      ...noTunnel
    })
  })
)

const keys = Result.getOrThrow(parseSecretKeys("0".repeat(64)))

/** A database with two teams. */
const database = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* migrate
    const sql = yield* SqlClient.SqlClient
    for (const { id, key } of Object.values(teams)) {
      yield* sql`insert into teams (id, name) values (${id}, ${id})`
      yield* sql`insert into project_secrets (team_id, api_key_hash, api_key_masked, signing_secret, signing_secret_masked)
        values (${id}, ${hashToken(key)}, '****', 'unused', '****')`
    }
  })
).pipe(Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url })))))

const stores = Stores.layer.pipe(
  Layer.provideMerge(Layer.merge(Secrets.layer({ keys }), Ingress.layer("http://ingress.test"))),
  Layer.provideMerge(database)
)

const entities = Layer.mergeAll(
  SourceBehaviour.layer,
  ConnectionBehaviour.layerWith(() => ({ offer: () => {}, wake: () => {}, work: Effect.void, close: () => {} })),
  TransformationBehaviour.layer,
  Layer.provide(WorkflowBehaviour.layer, [RunJournal.layer, Lease.layerAlways]),
  Layer.provide(ActionBehaviour.layer, Lease.layerAlways),
  FilterBehaviour.layer,
  Layer.provide(BulkOperationBehaviour.layer, [Dispatcher.layer, Lease.layerAlways]),
  KeyLimitBehaviour.layer,
  // Channels are another suite's: here they do nothing.
  ChannelEntity.toLayer({ Wake: () => Effect.void }),
  destinationEntity
).pipe(Layer.provide(Layer.merge(Cancellations.layer, FakeSandbox.layer)))

/** There is no ingress here: nothing that is sent to a source gets an answer. */
const noIngress = Layer.succeed(IngressSender, IngressSender.of({ send: () => Effect.succeed(null) }))

/** The control API on a free port, over real entities and a real database. */
const server = HttpRouter.serve(ApiRoutes.layer, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provide(ApiRoutes.streams),
  Layer.provideMerge(entities),
  Layer.provideMerge(TestRunner.layer),
  Layer.provideMerge(stores),
  Layer.provide([Egress.layer({ allow: ["127.0.0.0/8"] }), Coordination.layerMemory, noIngress]),
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0 }))
)

export class BaseUrl extends Context.Service<BaseUrl, string>()("@tidegate/api/test/BaseUrl") {}

export const layer = Layer.effect(
  BaseUrl,
  Effect.gen(function* () {
    const { address } = yield* HttpServer.HttpServer
    if (address._tag === "UnixPathAddress") return yield* Effect.die("no TCP address")
    return `http://127.0.0.1:${address.port}`
  })
).pipe(Layer.provideMerge(server))

/** An answer, its body parsed where it is JSON. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads whatever is there
  readonly body: any
}

export interface CallOptions {
  readonly key?: string | null
  readonly headers?: Record<string, string>
  /** Sent as JSON; a text or bytes as they are. */
  readonly body?: unknown
}

/** One call, as team A unless told. */
export const call = (method: string, path: string, options: CallOptions = {}): Effect.Effect<Answer, never, BaseUrl> =>
  Effect.flatMap(BaseUrl, (base) =>
    Effect.promise(async () => {
      const { body, headers, key = teams.a.key } = options
      const raw = typeof body === "string" || body instanceof Uint8Array
      const response = await fetch(base + path, {
        method,
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        },
        ...(body === undefined ? {} : { body: raw ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body) })
      })
      const text = await response.text()
      const json = text !== "" && response.headers.get("content-type")?.includes("json") === true
      return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text }
    })
  )

/** The client that derives from the contract, as team A. */
export const client = Effect.gen(function* () {
  const baseUrl = yield* BaseUrl
  return yield* HttpApiClient.make(Api, { baseUrl })
}).pipe(
  Effect.provide(
    HttpApiMiddleware.layerClient(Authorization, ({ next, request }) =>
      next(HttpClientRequest.bearerToken(request, teams.a.key))
    )
  ),
  Effect.provide(FetchHttpClient.layer)
)
