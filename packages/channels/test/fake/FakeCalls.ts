import { Effect } from "effect"
import { type Call, ProviderError } from "../../src/Adapter.ts"
import type { CallbackAnswer, FakeCallback, FakeProvider } from "./FakeProvider.ts"

/** How a test delivers a callback to whatever is under test. */
export type Deliver = (callback: FakeCallback) => Effect.Effect<CallbackAnswer>

/**
 * Calls of the fake provider, with its token where a request is authorized. `deliver` is used during a call that waits for a callback
 * (Graph). Requests to other origins get no answer.
 */
export const callsTo =
  (fake: FakeProvider, deliver: Deliver): Call =>
  (request) => {
    const isThere = URL.parse(request.url)?.origin === fake.origin
    if (!isThere) {
      return Effect.fail(
        new ProviderError({
          code: request.authorized ? "ACCOUNT_ORIGIN_REFUSED" : "PROVIDER_UNREACHABLE",
          message: "there is nobody at this origin",
          permanent: request.authorized,
          status: null,
          retryAfterMs: null
        })
      )
    }
    const { headers = {} } = request
    const authorization = request.authorized && fake.token !== null ? { authorization: `Bearer ${fake.token}` } : {}
    return Effect.suspend(() => {
      const reply = fake.handle({ ...request, headers: { ...headers, ...authorization } })
      return "resume" in reply ? Effect.map(deliver(reply.callback), reply.resume) : Effect.succeed(reply)
    }).pipe(
      Effect.map((answer) => {
        const { maxAnswerBytes = 1_048_576 } = request
        return answer.body.length <= maxAnswerBytes
          ? answer
          : { ...answer, body: answer.body.subarray(0, maxAnswerBytes), truncated: true }
      })
    )
  }

/** Delivers all callbacks that wait, and those that they lead to. */
export const deliverAll = (fake: FakeProvider, deliver: Deliver): Effect.Effect<number> =>
  Effect.gen(function* () {
    let count = 0
    while (fake.hasCallbacks) {
      for (const callback of fake.takeCallbacks()) {
        fake.answered(callback, yield* deliver(callback))
        count++
      }
    }
    return count
  })
