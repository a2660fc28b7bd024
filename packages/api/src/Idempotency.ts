import { createHash, hash } from "node:crypto"
import { Cause, type Context, Effect, Exit, Fiber } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql"
import { maxReplayCall } from "@tidegate/model/BodyLimits"
import { GatewayError, invalid, statusOf } from "@tidegate/model/GatewayError"
import { userOf } from "@tidegate/model/Session"
import type { Database } from "@tidegate/storage/Database"
import {
  beginCall,
  type Begun,
  forgetCall,
  keepAnswer,
  type KeyedCall,
  releaseCall
} from "@tidegate/storage/teams/IdempotencyKeys"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { Seed } from "./CallIds.ts"
import type { CurrentTeam } from "./contract/Authorization.ts"
import { read } from "./handlers/Calls.ts"
import { GivenBody, wholeBody } from "./handlers/JsonBody.ts"

/*
 * `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header), for every POST that needs a credential, in one place for all of
 * them: the call is carried out once, and its answer is kept for a day. Keys are separate for each team and caller.
 */

/** The key of a header: a string in the syntax of RFC 9651, or the same without quotes; null: it is neither. */
export const keyOf = (header: string): string | null => {
  const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replaceAll(/\\(.)/g, "$1")
  if (key.length === 0 || key.length > 255) return null
  return quoted !== undefined || /^[\x21\x23-\x2b\x2d-\x7e]+$/.test(key) ? key : null
}

const malformed = invalid([
  {
    path: "Idempotency-Key",
    message: 'must be 1 to 255 characters of printable ASCII, as "8e03978e-40d5-43e8-bc93-6894a57f9324"'
  }
])

type Caller = Context.Service.Shape<typeof CurrentTeam>

const keyedCall = (
  { method, url }: HttpServerRequest.HttpServerRequest,
  { caller, id: team_id }: Caller,
  key: string,
  body: Uint8Array
): KeyedCall => {
  const by = caller.kind === "key" ? caller.key.id : userOf(caller)
  const id = `idk_${hash("sha256", JSON.stringify([team_id, by, key]))}`
  const fingerprint = createHash("sha256").update(`${method} ${url}\n`).update(body).digest("base64url")
  return { id, team_id, fingerprint }
}

/** The body of an answer; null: it cannot be sent again. */
const textOf = ({ body }: HttpServerResponse.HttpServerResponse): string | null => {
  if (body._tag === "Empty") return ""
  return body._tag === "Uint8Array" ? Buffer.from(body.body).toString() : null
}

/** Whether the failure shows that nothing was done. Other causes are faults of the gateway, or of the call's form. */
const isRefusal = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  const inner = typeof error === "object" && error !== null && "error" in error ? error.error : error
  return inner instanceof GatewayError && statusOf[inner.code] < 500
}

/** Carries a call with a key out once. */
export const onceByKey = Effect.gen(function* () {
  const services = yield* Effect.context<Database | Secrets>()
  const storing = <A>(effect: Effect.Effect<A, GatewayError | SqlError.SqlError, Database | Secrets>) =>
    read(Effect.provideContext(effect, services))

  const finish = (call: KeyedCall, begun: Begun, exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>) => {
    if (Exit.isSuccess(exit)) {
      const { status } = exit.value
      if (status < 300) return storing(keepAnswer(call, begun, status, textOf(exit.value)))
      return storing(status < 500 ? forgetCall(call, begun) : releaseCall(call, begun))
    }
    return storing(isRefusal(exit.cause) ? forgetCall(call, begun) : releaseCall(call, begun))
  }

  const keyed = Effect.fnUntraced(function* <E, R>(
    answering: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
    who: Caller,
    request: HttpServerRequest.HttpServerRequest,
    key: string
  ) {
    const body = yield* wholeBody(request, maxReplayCall)
    const call = keyedCall(request, who, key, body)
    const begun = yield* storing(beginCall(call))
    if (begun.kind === "answered") {
      const headers = { "idempotent-replayed": "true" }
      return begun.body === ""
        ? HttpServerResponse.empty({ status: begun.status, headers })
        : HttpServerResponse.text(begun.body, { status: begun.status, contentType: "application/json", headers })
    }
    const carriedOut = answering.pipe(
      Effect.provideService(Seed, { at: begun.at, text: `${call.id} ${call.fingerprint}` }),
      Effect.provideService(GivenBody, body),
      // When the result cannot be stored, the call stays under way until its hold ends; then it is carried out again with the
      // same ids.
      Effect.onExit((exit) => Effect.ignore(finish(call, begun, exit)))
    )
    // It continues when its caller hangs up: a repetition has to get the result.
    return yield* Effect.flatMap(Effect.forkDetach(carriedOut), Fiber.join)
  })

  return <E, R>(
    answering: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
    who: Caller
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E | GatewayError, R | HttpServerRequest.HttpServerRequest> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const header = request.headers["idempotency-key"]
      if (header === undefined || request.method !== "POST") return answering
      const key = keyOf(header)
      return key === null ? Effect.fail(malformed) : Effect.scoped(keyed(answering, who, request, key))
    })
})
