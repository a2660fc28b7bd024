import { Cause, Clock, Context, Effect, type Layer, Option, type Types } from "effect"
import { Headers, HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { Loops } from "@tidegate/entities/Loops"
import { fail, GatewayError, invalid, toResponse } from "@tidegate/model/GatewayError"
import { Ingress } from "@tidegate/model/Ingress"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { withoutSecretLooks } from "@tidegate/redaction/Redaction"
import { fault } from "@tidegate/telemetry/Faults"
import { Api } from "./contract/Api.ts"
import { AnyOrigin } from "./contract/Authorization.ts"
import { Deprecations, deprecationHeaders } from "./contract/Deprecation.ts"
import { refusedCondition, tagRead } from "./Conditional.ts"
import { CorsOrigins, crossOrigin, type Openness } from "./CrossOrigin.ts"
import { cookieCredential } from "./dashboard/BrowserSession.ts"
import { BrowserSessionKey } from "./dashboard/SealedCookies.ts"
import { fieldFaults } from "./FieldFaults.ts"
import { judgeNoBody } from "./handlers/JsonBody.ts"
import { Handling, handlingOf, judgeQuery } from "./strict/Handling.ts"

interface KnownPath {
  readonly pattern: RegExp
  readonly methods: ReadonlyArray<string>
  readonly anyOrigin: boolean
}

/** The known paths and their methods, matched as the router does: ignoring case and a trailing slash. */
const knownPaths: ReadonlyArray<KnownPath> = [
  ...Object.values(Api.groups)
    .flatMap((group) => Object.values(group.endpoints))
    .map(({ annotations, method, path }) => ({
      pattern: new RegExp(`^${path.replaceAll(/:[a-z]+/gi, "[^/]+")}/?$`, "i"),
      methods: [method],
      anyOrigin: Context.getOrUndefined(annotations, AnyOrigin) === true
    })),
  { pattern: /^\/(?:openapi\.json|docs(?:\/scalar-\w+\.js)?)?\/?$/i, methods: ["GET"], anyOrigin: false },
  { pattern: /^\/decisions\/(?:approve|reject)\/?$/i, methods: ["GET", "POST"], anyOrigin: false },
  { pattern: /^\/dashboard\/session\/?$/i, methods: ["GET", "POST", "DELETE"], anyOrigin: false },
  { pattern: /^\/dashboard\/sign-in\/(?:begin|finish)\/?$/i, methods: ["POST"], anyOrigin: false },
  {
    pattern: /^\/dashboard(?:\/(?!(?:session|sign-in\/(?:begin|finish))\/?$).*)?$/i,
    methods: ["GET"],
    anyOrigin: false
  }
]

/** The value of `Allow` for a path; null when there is no such path. */
const allowedOn = (path: string): string | null => {
  const methods = new Set(knownPaths.flatMap((known) => (known.pattern.test(path) ? known.methods : [])))
  if (methods.size === 0) return null
  if (methods.has("GET")) methods.add("HEAD")
  return [...methods, "OPTIONS"].join(", ")
}

/** The methods of a path, and those that pages of any origin may use. */
const opennessOf = (path: string): Openness => {
  const known = knownPaths.filter(({ pattern }) => pattern.test(path))
  return {
    methods: [...new Set(known.flatMap(({ methods }) => methods))],
    toAnybody: known.flatMap(({ anyOrigin, methods }) => (anyOrigin ? methods : []))
  }
}

const respond = (error: GatewayError, headers: Record<string, string> = {}): HttpServerResponse.HttpServerResponse => {
  const { body, status } = toResponse(error)
  return HttpServerResponse.jsonUnsafe(body, { status, headers })
}

/** Whether a path or query can be stored and compared: valid percent-encoding of UTF-8, no NUL. */
const isReadable = (url: string): boolean => {
  if (!url.includes("%")) return true
  try {
    return !decodeURIComponent(url).includes("\u0000")
  } catch {
    return false
  }
}

/** The answer to a failure; null when it is a fault of the gateway. */
const answerTo = (
  error: unknown,
  request: HttpServerRequest.HttpServerRequest,
  path: string
): HttpServerResponse.HttpServerResponse | null => {
  if (error instanceof GatewayError) return respond(error)
  if (HttpApiError.HttpApiSchemaError.is(error)) {
    // A record that cannot be encoded is the gateway's fault, not the caller's.
    return error.kind === "Body" || error.kind === "ResponseHeaders"
      ? null
      : respond(invalid(fieldFaults(error.cause.issue)))
  }
  if (!HttpServerError.isHttpServerError(error) || error.reason._tag !== "RouteNotFound") return null
  const allow = allowedOn(path)
  // An allowed method that found no route: the router accepts no id longer than a hundred characters.
  if (allow === null || (request.method !== "OPTIONS" && allow.split(", ").includes(request.method))) {
    return respond(fail("ROUTE_NOT_FOUND", `there is no route ${request.method} ${path}`))
  }
  if (request.method === "OPTIONS") return HttpServerResponse.empty({ status: 204, headers: { allow } })
  return respond(fail("METHOD_NOT_ALLOWED", `${request.method} is not one of ${allow}`), { allow })
}

/** The default headers of every answer: it must not be framed, stored, interpreted as another content type, or run anything. */
const cautions = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
}

const demanded = (status: number): Readonly<Record<string, string>> => {
  if (status === 401) return { "www-authenticate": "Bearer" }
  if (status === 426) return { upgrade: "websocket", connection: "upgrade" }
  return status === 503 || status === 429 ? { "retry-after": "1" } : {}
}

/** Adds the headers that its status requires, and the defaults; the answer's own headers stay. */
const withHeaders = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.setHeaders(response, { ...cautions, ...demanded(response.status), ...response.headers })

const answer = (response: HttpServerResponse.HttpServerResponse) => Effect.succeed(withHeaders(response))

/** Wraps every call of the control API: `/v1/…` is the route without it, and every failure gets the standard error body. */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Ingress> = HttpRouter.use((router) =>
  Effect.flatMap(
    Effect.all([Loops, TrustedProxies.Current, CorsOrigins, BrowserSessionKey, Ingress, Clock.Clock, Deprecations]),
    ([loops, proxies, origins, sessionKey, { publicUrl }, clock, deprecations]) => {
      const aboutDeprecation = deprecationHeaders(deprecations)
      return router.addGlobalMiddleware((app) =>
        Effect.flatMap(
          HttpServerRequest.HttpServerRequest,
          (
            original
          ): Effect.Effect<
            HttpServerResponse.HttpServerResponse,
            Types.unhandled,
            HttpServerRequest.HttpServerRequest
          > => {
            const prefixed = /^\/v1(?=[/?]|$)/i.test(original.url)
            const url = prefixed ? original.url.slice(3) : original.url
            const address = proxies.clientOf(Option.getOrUndefined(original.remoteAddress), {
              "x-forwarded-for": original.headers["x-forwarded-for"],
              forwarded: original.headers["forwarded"]
            })
            const credential = cookieCredential(
              sessionKey,
              original.headers,
              publicUrl,
              clock.currentTimeMillisUnsafe()
            )
            const request = original.modify({
              url: prefixed && !url.startsWith("/") ? `/${url}` : url,
              // Behind this, the dashboard's calls are calls with a bearer credential like all others.
              ...(credential === null
                ? {}
                : { headers: Headers.set(original.headers, "authorization", `Bearer ${credential}`) }),
              // The client's address, for code that counts by it.
              remoteAddress: Option.fromNullOr(address)
            })
            const path = request.url.split("?", 1)[0] ?? ""
            if (!isReadable(request.url)) {
              return answer(
                respond(invalid([{ path: "url", message: "must be percent-encoded UTF-8 without NUL characters" }]))
              )
            }
            // The router ends a path at either of them, so the rest would be ignored silently.
            if (/[;#]/.test(path)) {
              return answer(respond(fail("ROUTE_NOT_FOUND", `there is no route ${request.method} ${path}`)))
            }
            // A call that the gateway itself made, for a destination or a step, may belong to a chain of such calls.
            if (!loops.admits(request.headers)) {
              return answer(
                respond(
                  fail(
                    "LOOP_DETECTED",
                    "the call leads back to the gateway too often: it has come of one that was made here"
                  )
                )
              )
            }
            const refused = refusedCondition(request)
            if (refused !== null) return answer(respond(refused))
            const { answered, handled } = handlingOf(request)
            // Other calls are checked when the caller is known.
            const judged =
              handled.operation?.isPublic === true
                ? Effect.andThen(Effect.orDie(Effect.andThen(judgeQuery, judgeNoBody)), app)
                : app
            return judged.pipe(
              Effect.provideService(HttpServerRequest.HttpServerRequest, request),
              Effect.provideService(Handling, handled),
              Effect.catchCause((cause) => {
                if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
                const error = Cause.squash(cause)
                const answer = answerTo(error, request, path)
                if (answer !== null) return Effect.succeed(answer)
                return Effect.map(
                  fault({
                    code: "INTERNAL_ERROR",
                    message: "the request could not be carried out; the fault is in the gateway's log",
                    // A token may be part of a path.
                    log: `${request.method} ${withoutSecretLooks(path)} failed`,
                    cause
                  }),
                  (error) => respond(error)
                )
              }),
              Effect.map((response) =>
                HttpServerResponse.setHeaders(
                  withHeaders(handled.operation === null ? response : tagRead(request, response)),
                  {
                    ...crossOrigin(origins, request, opennessOf(path)),
                    ...(handled.operation === null ? null : aboutDeprecation.get(handled.operation.id)),
                    ...answered
                  }
                )
              )
            )
          }
        )
      )
    }
  )
)
