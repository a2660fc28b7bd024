import { hash, timingSafeEqual } from "node:crypto"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Credentials } from "@tidegate/api/Credentials"
import type { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { wireServer } from "@tidegate/ingress/wire/WireServer"
import { fail, type GatewayError, toResponse } from "@tidegate/model/GatewayError"
import { administering, lackingOf } from "@tidegate/model/Permission"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { demoTeam } from "@tidegate/storage/teams/Teams"
import { contentType, exposition } from "@tidegate/telemetry/Exposition"
import { supervisor } from "./processes/Supervised.ts"
import { Samples } from "./Samples.ts"
import type { TelemetrySettings } from "./TelemetrySettings.ts"

const path = "/metrics"

const refuse = (error: GatewayError): HttpServerResponse.HttpServerResponse => {
  const { body, status } = toResponse(error)
  return HttpServerResponse.jsonUnsafe(body, {
    status,
    headers: status === 401 ? { "www-authenticate": "Bearer" } : status === 503 ? { "retry-after": "5" } : {}
  })
}

const noKey = fail("INVALID_API_KEY", "send the key of the metrics: Authorization: Bearer <key>")

const bearerOf = ({ headers }: HttpServerRequest.HttpServerRequest): string =>
  /^bearer +(\S{1,512})$/i.exec(headers["authorization"] ?? "")?.[1] ?? ""

const isKey = (given: string, key: Redacted.Redacted): boolean =>
  timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", Redacted.value(key), "buffer"))

/** Answers with the metrics, if the caller is authorized. */
const answer = <R>(check: (bearer: string) => Effect.Effect<void, GatewayError, R>) =>
  Effect.map(Samples, (samples) => {
    const own = Effect.map(samples.refresh, exposition)
    supervisor?.exposeBy(() => Effect.runPromise(own))
    return Effect.gen(function* () {
      yield* check(bearerOf(yield* HttpServerRequest.HttpServerRequest))
      const text = supervisor === null ? yield* own : yield* Effect.promise(supervisor.expositions)
      return HttpServerResponse.text(text, { contentType, headers: { "cache-control": "no-store" } })
    }).pipe(Effect.catch((error) => Effect.succeed(refuse(error))))
  })

/**
 * On the public port, with the metrics key, or with the operators' team's API key that has all scopes. The metrics
 * cover all teams, so no other team's key and no restricted key gives access.
 */
export const onPublicPort = ({
  metricsKey
}: TelemetrySettings): Layer.Layer<never, never, HttpRouter.HttpRouter | Samples | Database | RateLimiter | Secrets> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const { callerOf } = yield* Credentials
      const check = Effect.fnUntraced(function* (bearer: string) {
        if (metricsKey !== null && isKey(bearer, metricsKey)) return
        const caller = yield* callerOf(bearer)
        const isWhole =
          caller.kind === "key" && caller.key.team === demoTeam && lackingOf(administering, path, caller.key) === null
        if (!isWhole) yield* noKey
      })
      yield* router.add("GET", path, yield* answer(check))
    })
  ).pipe(Layer.provide(Credentials.layer))

/** On a separate port that serves nothing else. Without a key it is reachable from this machine only; the settings enforce that. */
export const onOwnPort = (
  { metricsKey }: TelemetrySettings,
  listen: { readonly host: string; readonly port: number }
) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const metrics = yield* answer((bearer) =>
        metricsKey === null || isKey(bearer, metricsKey) ? Effect.void : noKey
      )
      return HttpServer.serve(
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          request.method === "GET" && request.url.split("?", 1)[0] === path
            ? metrics
            : Effect.succeed(HttpServerResponse.empty({ status: 404 }))
        )
      )
    })
  ).pipe(
    Layer.provide(
      NodeHttpServer.layer(() => wireServer(null, { connections: supervisor?.connections() ?? null }), listen)
    )
  )
