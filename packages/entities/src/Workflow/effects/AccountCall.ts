import { Effect } from "effect"
import type { AccountCall } from "@tidegate/actions/Call"
import { maxAnswerBytes } from "@tidegate/actions/Answers"
import type { ProviderError } from "@tidegate/channels/Adapter"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { Answer } from "@tidegate/connectors/Connector"
import type { StepError } from "@tidegate/workflows/StepKind"
import { ProviderCalls } from "../../accounts/ProviderCalls.ts"
import type { Carry } from "./Call.ts"
import { makeCallHeaders } from "./CallHeaders.ts"
import { failureOf, outputOf } from "./JudgedAnswer.ts"
import { withAnswer } from "./RefusedAnswer.ts"

const errorOf = ({ code, message, permanent, retryAfterMs }: ProviderError): StepError => ({
  code: code === "ACCOUNT_UNAUTHORIZED" ? "PROVIDER_ACCOUNT_NOT_CONNECTED" : code,
  message,
  ...(permanent ? { final: true } : {}),
  ...(retryAfterMs === null ? {} : { retry_after_ms: retryAfterMs })
})

/** The headers of a flat list, each of which is there once. */
const named = (flat: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]!]] : [])))

/** Sends a request with the credentials of a provider account, and judges the answer. */
export const makeAccountCall = Effect.gen(function* () {
  const providers = yield* KnownProviders
  const { baseUrl, of } = yield* ProviderCalls
  const withCallHeaders = yield* makeCallHeaders

  const carry: Carry<AccountCall> = Effect.fnUntraced(function* (
    { account_id, output, provider_key, request: { body, method, path } },
    { effect, heard, key, run }
  ) {
    const provider = providers.find((one) => one.key === provider_key)
    if (provider === undefined) {
      return yield* Effect.fail({ code: "ACTION_UNAVAILABLE", message: "the provider is not known here" })
    }
    const owner = { team_id: run.team_id, provider, account_id }
    const sent = yield* Effect.mapError(
      of(owner)({
        method,
        url: (yield* baseUrl(owner)) + path,
        headers: {
          accept: "application/json",
          ...(body === null ? {} : { "content-type": "application/json" }),
          ...named(withCallHeaders([], effect, run, key))
        },
        ...(body === null ? {} : { body: JSON.stringify(body) }),
        authorized: true,
        maxAnswerBytes
      }),
      errorOf
    )
    const { headers, status, truncated } = sent
    const answer: Answer = { status, headers, body: Buffer.from(sent.body), bodyTruncated: truncated }
    // The call has renewed the token once already: without a new consent or key every other call would fail, too.
    if (status === 401) {
      const message = "the provider refuses the account's credentials: connect it again"
      const error = { code: "PROVIDER_ACCOUNT_NOT_CONNECTED", message, status, final: true }
      return yield* Effect.flip(withAnswer(error, answer))
    }
    const failure = failureOf(answer)
    yield* heard(answer, failure ?? "successful")
    return yield* outputOf(answer, failure, output)
  })
  return carry
})
