import { hash, timingSafeEqual } from "node:crypto"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { wireServer } from "@tidegate/doors/wire/WireServer"
import { type ErrorCode, fail, toResponse } from "@tidegate/model/GatewayError"
import type { Database } from "@tidegate/storage/Database"
import { demoTeam, findTeamByApiKey } from "@tidegate/storage/Teams"
import { contentType, exposition } from "@tidegate/telemetry/Exposition"
import { Samples } from "./Samples.ts"
import type { TelemetrySettings } from "./TelemetrySettings.ts"

const path = "/metrics"

const refuse = (code: ErrorCode, message: string): HttpServerResponse.HttpServerResponse => {
  const { body, status } = toResponse(fail(code, message))
  return HttpServerResponse.jsonUnsafe(body, {
    status,
    headers: status === 401 ? { "www-authenticate": "Bearer" } : { "retry-after": "5" }
  })
}

const bearerOf = ({ headers }: HttpServerRequest.HttpServerRequest): string =>
  /^bearer +(\S{1,512})$/i.exec(headers["authorization"] ?? "")?.[1] ?? ""

const isKey = (given: string, key: Redacted.Redacted): boolean =>
  timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", Redacted.value(key), "buffer"))

/** The metrics, for who has the right to them. */
const answer = <E>(mayRead: (bearer: string) => Effect.Effect<boolean, E>) =>
  Effect.gen(function* () {
    const samples = yield* Samples
    return Effect.gen(function* () {
      const bearer = bearerOf(yield* HttpServerRequest.HttpServerRequest)
      if (!(yield* mayRead(bearer))) {
        return refuse(
          bearer === "" ? "UNAUTHENTICATED" : "INVALID_API_KEY",
          "send the key of the metrics: Authorization: Bearer <key>"
        )
      }
      yield* samples.refresh
      return HttpServerResponse.text(exposition(), { contentType, headers: { "cache-control": "no-store" } })
    }).pipe(
      // Closed: a database that does not answer lets nobody in.
      Effect.catch(() => Effect.succeed(refuse("QUEUE_UNAVAILABLE", "the key could not be checked; try again")))
    )
  })

/**
 * On the public port, for who has the metrics' own key, or the API key of the operators' team: the metrics are of all teams,
 * and no other team's key opens them.
 */
export const onPublicPort = ({
  metricsKey
}: TelemetrySettings): Layer.Layer<never, never, HttpRouter.HttpRouter | Samples | Database> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const database = yield* Effect.context<Database>()
      const isOperator = (bearer: string) =>
        findTeamByApiKey(bearer).pipe(
          Effect.provideContext(database),
          Effect.timeout("5 seconds"),
          Effect.map((team) => team === demoTeam)
        )
      const mayRead = (bearer: string) =>
        bearer === "" || (metricsKey !== null && isKey(bearer, metricsKey))
          ? Effect.succeed(bearer !== "")
          : isOperator(bearer)
      yield* router.add("GET", path, yield* answer(mayRead))
    })
  )

/** On a port of its own, which has nothing else. Without a key it is open to the machine: the settings let it be no wider. */
export const onOwnPort = (
  { metricsKey }: TelemetrySettings,
  listen: { readonly host: string; readonly port: number }
) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const metrics = yield* answer((bearer) => Effect.succeed(metricsKey === null || isKey(bearer, metricsKey)))
      return HttpServer.serve(
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          request.method === "GET" && request.url.split("?", 1)[0] === path
            ? metrics
            : Effect.succeed(HttpServerResponse.empty({ status: 404 }))
        )
      )
    })
  ).pipe(Layer.provide(NodeHttpServer.layer(() => wireServer(null), listen)))
