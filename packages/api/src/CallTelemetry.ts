import { Clock, Context, Effect, type Layer, type Types } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { newErrorId } from "@tidegate/telemetry/Faults"
import { metrics } from "@tidegate/telemetry/Metrics"
import { LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import { Api } from "./contract/Api.ts"

/** What later code finds out about a call: its team. */
export const CallNotes = Context.Reference<{ team: string | null }>("@tidegate/api/CallNotes", {
  defaultValue: () => ({ team: null })
})

interface Route {
  readonly path: string
  readonly pattern: RegExp
  readonly group: string
}

/** Unknown routes are one group, whatever strangers request. */
const elsewhere = { path: "", group: "other" }

/** As in the router, fixed segments of a path match before parameters: `/workflows/test` is not a workflow's path. */
const routes: ReadonlyArray<Route> = [
  ...new Set(
    Object.values(Api.groups).flatMap((group) => Object.values(group.endpoints).map(({ path }) => path as string))
  )
]
  .toSorted((a, b) => a.split("/:").length - b.split("/:").length)
  .map((path) => ({
    path,
    pattern: new RegExp(`^(?:/v1)?${path.replaceAll(/:[a-z]+/gi, "([^/]+)")}/?$`, "i"),
    group: path.split("/")[1]!
  }))

/** Not part of the API, and requested continuously by monitoring. */
const unwatched = /^\/(?:healthz|readyz|metrics)\/?$/

const idPattern = /^[a-z]{2,3}_[0-9a-z]{26}$/

export const routeOf = (
  path: string
): { readonly path: string; readonly group: string; readonly id: string | null } => {
  for (const { group, path: route, pattern } of routes) {
    const found = pattern.exec(path)
    if (found === null) continue
    const id = found.slice(1).find((part) => idPattern.test(part)) ?? null
    return { path: route, group, id }
  }
  return { ...elsewhere, id: null }
}

/** The id under which an actor, perhaps in another process, has logged the error. */
const statedErrorId = ({ body }: HttpServerResponse.HttpServerResponse): string | null =>
  body._tag === "Uint8Array"
    ? (/"error_id":"(err_[0-9a-f]{24})"/.exec(Buffer.from(body.body).toString())?.[1] ?? null)
    : null

const isRead = (method: string): boolean => method === "GET" || method === "HEAD" || method === "OPTIONS"

/**
 * Counts every call of the control API. Writes a log line for each call that changes something, and for each that fails because
 * of the gateway: then the answer has an `x-error-id`, which is also in the line.
 */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const clock = yield* Clock.Clock
    const run = Effect.runForkWith(yield* Effect.context())
    const limits = yield* LineLimits
    const lines = new WideLines("call", { ...limits, successes: Number.POSITIVE_INFINITY })

    const tell = (
      request: HttpServerRequest.HttpServerRequest,
      response: HttpServerResponse.HttpServerResponse,
      team: string | null,
      tookMs: number
    ): HttpServerResponse.HttpServerResponse => {
      const path = request.url.split("?", 1)[0] ?? ""
      if (unwatched.test(path)) return response
      const { status } = response
      const { group, id, path: route } = routeOf(path)
      metrics.apiCalls.at(group, String(status)).add()
      // A stream takes as long as it is open.
      if (status !== 101) metrics.apiSeconds.at(group).observe(tookMs / 1_000)
      // A request that leads back to the gateway too often is its caller's fault.
      const isFault = status >= 500 && status !== 508
      if (isRead(request.method) && !isFault) return response
      const error_id = isFault ? (statedErrorId(response) ?? newErrorId()) : null
      lines.write(run, status >= 400, clock.currentTimeMillisUnsafe(), () => ({
        outcome: status,
        method: request.method,
        route,
        id,
        team_id: team,
        duration_ms: Math.round(tookMs),
        ...(error_id === null ? {} : { error_id })
      }))
      return error_id === null ? response : HttpServerResponse.setHeader(response, "x-error-id", error_id)
    }

    yield* router.addGlobalMiddleware((app) =>
      Effect.flatMap(
        HttpServerRequest.HttpServerRequest,
        (
          request
        ): Effect.Effect<
          HttpServerResponse.HttpServerResponse,
          Types.unhandled,
          HttpServerRequest.HttpServerRequest
        > => {
          const since = performance.now()
          const notes = { team: null as string | null }
          return Effect.map(Effect.provideService(app, CallNotes, notes), (response) =>
            tell(request, response, notes.team, performance.now() - since)
          )
        }
      )
    )
  })
)
