import { randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { IngressSender, type SenderAnswer } from "@tidegate/entities/Source/IngressSender"
import { maxReplayCall } from "@tidegate/model/BodyLimits"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { loopHeader, pushHeader } from "@tidegate/model/HeaderRules"
import { prefixes } from "@tidegate/model/Ids"
import { Ingress, ingressPath, sourceUrl } from "@tidegate/model/Ingress"
import { type ComposedRequest, composeTestRequest, testRequestBody } from "@tidegate/resources/TestRequest"
import * as RequestReads from "@tidegate/storage/reads/RequestReads"
import { readTestedSource } from "@tidegate/storage/reads/TestedSourceRead"
import { idOfCall } from "../CallIds.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { refuse, retryIn } from "../Credentials.ts"
import { type ById, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObjectIfAny } from "../handlers/JsonBody.ts"
import { perMinute } from "../RateLimit.ts"

/** How many test requests a source takes. */
const tests = perMinute("test_requests", 60)

/** A workflow or an upstream may take its time to answer; the request is stored long before. */
const patience = "20 seconds"

const wireHeaders = ({ headers }: ComposedRequest, host: string, chain: string | undefined): ReadonlyArray<string> => {
  const flat = ["host", host]
  for (const [name, value] of Object.entries(headers)) pushHeader(flat, name, value)
  // A test that the gateway's own call sends, for example a workflow's, continues the chain of that call.
  pushHeader(flat, loopHeader, chain)
  return flat
}

/** Why nothing is stored, in the words of ingress. */
const notStored = (answer: SenderAnswer | null): GatewayError =>
  answer?.status === 429
    ? fail("RATE_LIMITED", "the source takes no more requests now: its rate limit is reached")
    : fail("QUEUE_UNAVAILABLE", "the request could not be stored; repeat the call")

/** Sends test requests to sources. */
export const testRequests = Effect.gen(function* () {
  const reading = yield* reader
  const sender = yield* IngressSender
  const ingress = yield* Ingress
  const limiter = yield* RateLimiter

  return Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
    const { id: team } = yield* CurrentTeam
    const input = yield* Effect.fromResult(testRequestBody.judge(yield* readJsonObjectIfAny(request, maxReplayCall)))
    const { id: sourceId, name, ...source } = yield* reading(readTestedSource(team, params.id))
    const { allowed, retryMs } = yield* limiter.take(tests, sourceId)
    if (!allowed) {
      const retry = retryIn(retryMs)
      yield* refuse(retry, `a source takes ${tests.calls} test requests a minute; repeat the call after ${retry} s`)
    }
    const url = sourceUrl(ingress, name)
    const at = { milliseconds: yield* Clock.currentTimeMillis, entropy: randomBytes }
    const composed = yield* Effect.fromResult(composeTestRequest({ ...source, url }, input, at))
    const { body, method, path, sample, signed } = composed
    const id = yield* idOfCall(prefixes.request)
    const chain = request.headers[loopHeader]
    const sent = {
      id,
      method,
      target: ingressPath + name + path,
      headers: wireHeaders(composed, new URL(url).host, chain),
      body
    }
    const answer = yield* Effect.timeoutOrElse(sender.send(sent), {
      duration: patience,
      orElse: () => Effect.succeed(null)
    })
    const stored = yield* Effect.catchIf(
      reading(RequestReads.verdict(team, id)),
      ({ code }) => code === "NOT_FOUND",
      () => Effect.fail(notStored(answer))
    )
    if (stored.rejection_cause === "LOOP_DETECTED") {
      return yield* fail("LOOP_DETECTED", "the call leads back to the gateway too often: its test request was rejected")
    }
    return {
      request_id: id,
      source_id: sourceId,
      sample,
      signed,
      status: stored.status,
      verified: stored.verified,
      rejection_cause: stored.rejection_cause,
      answer:
        answer === null
          ? null
          : { status: answer.status, content_type: answer.contentType, body: Buffer.from(answer.body).toString("utf8") }
    }
  })
})
