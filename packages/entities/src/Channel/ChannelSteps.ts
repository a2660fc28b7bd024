import { Clock, Context, Effect } from "effect"
import {
  type Adapter,
  type Call,
  type Context as AdapterContext,
  ProviderError,
  type Provisioned,
  type Subscription
} from "@tidegate/channels/Adapter"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { Channel, ChannelSubscription, Failure, Poll, Step } from "@tidegate/channels/machine/Channel"
import type { SourceProvider } from "@tidegate/channels/SourceProvider"
import { definitionsOf } from "@tidegate/channels/SourceProviders"
import { channelUrl, Ingress } from "@tidegate/model/Ingress"
import type { Outcome } from "@tidegate/storage/channels/ChannelWork"
import { subscriptionSecrets } from "@tidegate/storage/channels/Subscriptions"
import { type PermitsByKey, permitsByKey } from "@tidegate/runtime/FairSemaphore"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { SqlError } from "effect/sql"
import { ProviderCalls } from "../accounts/ProviderCalls.ts"

/* The steps of a channel that call its provider. A failure is an outcome: only the database can fail a step. */

/** A step that calls the provider. */
export type CallingStep = Extract<Step, { readonly do: "provision" | "renew" | "stop" | "poll" }>

/** All requests of one step take no longer. */
const patience = "60 seconds"
/** The longest id of a subscription at its provider, in characters. It is stored and shown. */
const maxExternalId = 1_024
/** The largest cursor, in characters of JSON. */
const maxCursor = 64 * 1024

/** Bytes of an answer that any step may read. */
const usualAnswer = 1_048_576
/**
 * Steps that read larger answers, two at a time in this process and one of a team: what ten megabytes become in memory is several
 * times as large.
 */
const LargeAnswers = Context.Reference<PermitsByKey>("@tidegate/entities/Channel/LargeAnswers", {
  defaultValue: () => permitsByKey({ permits: 2, perKey: 1 })
})

const failed = (code: Failure["code"] & ProviderError["code"], message: string, permanent: boolean): ProviderError =>
  new ProviderError({ code, message, permanent, status: null, retryAfterMs: null })

const isTooLong = (id: string | null): boolean => id !== null && id.length > maxExternalId

/** What a provider has agreed to. Fails if its ids are too long to be ids. */
const bounded = (agreed: Provisioned): Effect.Effect<Provisioned, ProviderError> =>
  isTooLong(agreed.externalChannelId) || isTooLong(agreed.externalResourceId)
    ? Effect.fail(failed("PROVIDER_ANSWER_INVALID", "The id of the subscription is too long", false))
    : Effect.succeed(agreed)

/** How a subscription or a poll calls its provider. */
interface Place {
  readonly provider: SourceProvider
  readonly account_id: string | null
  readonly inputs: AdapterContext["inputs"]
}

type ByContext<A> = (context: AdapterContext) => Effect.Effect<A, ProviderError>

/** Who makes the steps of channels in this process. */
export const makeChannelSteps = Effect.gen(function* () {
  const calls = yield* ProviderCalls
  const ingress = yield* Ingress
  const providers = yield* KnownProviders
  const large = yield* LargeAnswers
  const providerOf = (key: string | undefined) => providers.find((provider) => provider.key === key)

  /** The definition of a provider source; undefined: this version does not know it. */
  const definitionOf = (provider_key: string, definition_key: string) => {
    const provider = providerOf(provider_key)
    return provider && definitionsOf(provider).find(({ key }) => key === definition_key)
  }

  const contextOf = Effect.fnUntraced(function* (team_id: string, { account_id, inputs, provider }: Place) {
    const owner = { team_id, provider, account_id }
    const now = yield* Clock.currentTimeMillis
    return { call: calls.of(owner), baseUrl: yield* calls.baseUrl(owner), inputs, now }
  })

  /** Runs a step with small answers. One that finds a larger answer is run again, with a permit for it. */
  const bySize = <A>(team_id: string, context: AdapterContext, step: ByContext<A>): Effect.Effect<A, ProviderError> =>
    Effect.suspend(() => {
      let isLarge = false
      const call: Call = (request) => {
        const { maxAnswerBytes = usualAnswer } = request
        if (maxAnswerBytes <= usualAnswer) return context.call(request)
        return Effect.filterOrFail(
          context.call({ ...request, maxAnswerBytes: usualAnswer }),
          ({ status, truncated }) => {
            // Of an error the beginning is enough.
            const isCut = truncated && status < 400
            isLarge ||= isCut
            return !isCut
          },
          () => failed("PROVIDER_ANSWER_INVALID", "The answer is large", false)
        )
      }
      return Effect.catch(step({ ...context, call }), (error) =>
        isLarge ? large.within(team_id)(Effect.suspend(() => step(context))) : Effect.fail(error)
      )
    })

  /** A step ends in time, and a fault of an adapter is a failure of this step alone. */
  const within = <A>(team_id: string, context: AdapterContext, step: ByContext<A>): Effect.Effect<A, ProviderError> =>
    bySize(team_id, context, step).pipe(
      Effect.timeoutOrElse({
        duration: patience,
        orElse: () => Effect.fail(failed("PROVIDER_UNREACHABLE", "The provider did not answer in time", false))
      }),
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("a step of a channel failed by a fault of its adapter", defect),
          Effect.fail(failed("PROVIDER_ANSWER_INVALID", "The answer of the provider could not be read", true))
        )
      )
    )

  const poll = Effect.fnUntraced(function* (
    { account, definition, settings, team_id }: Channel,
    step: Poll
  ): Effect.fn.Return<Outcome> {
    if (definition === null || settings === null) {
      return { did: "poll failed", step, error: failed("PROVIDER_REFUSED", "The provider is not known", true) }
    }
    const { provider, trigger } = definition
    const account_id = provider.account === null ? null : (account?.id ?? null)
    const context = yield* contextOf(team_id, { provider, account_id, inputs: settings.inputs })
    return yield* within(team_id, context, (given) => trigger.poller.poll(given, step.cursor)).pipe(
      Effect.filterOrFail(
        ({ cursor }) => JSON.stringify(cursor).length <= maxCursor,
        () => failed("PROVIDER_ANSWER_INVALID", "The position in the provider's list is too long", true)
      ),
      Effect.map((polled): Outcome => ({ did: "poll", step, ...polled })),
      Effect.catch((error) => Effect.succeed<Outcome>({ did: "poll failed", step, error }))
    )
  })

  /** What a call for a subscription needs; null: its adapter is not known any more. */
  const placeOf = ({ state }: Channel, row: ChannelSubscription): (Place & { readonly adapter: Adapter }) | null => {
    const basis = state.bases[state.subscriptions[row.id]?.basis ?? ""]
    const definition = basis && definitionOf(basis.provider_key, row.definition_key)
    const adapter = definition?.trigger.adapter ?? null
    if (basis === undefined || definition === undefined || adapter === null) return null
    return { adapter, provider: definition.provider, account_id: row.account_id, inputs: basis.inputs }
  }

  const call = Effect.fnUntraced(function* (
    channel: Channel,
    step: Exclude<CallingStep, Poll>
  ): Effect.fn.Return<Outcome, SqlError.SqlError, Database | Secrets> {
    const { id } = step
    const fails = (error: Failure): Outcome => ({ did: "failed", id, what: step.do, error })
    const row = channel.subscriptions.find((one) => one.id === id)
    const place = row === undefined ? null : placeOf(channel, row)
    // Nobody can end it any more.
    if (place === null && step.do === "stop") return { did: "stop", id }
    if (row === undefined || place === null) {
      return fails(failed("PROVIDER_REFUSED", "The provider of the subscription is not known", true))
    }
    const secrets = yield* Effect.catchTag(subscriptionSecrets(channel.team_id, id), "SecretUnreadable", (cause) =>
      Effect.as(Effect.logError("the secrets of a subscription cannot be read", { subscription_id: id }, cause), null)
    )
    // Fails closed: without its secrets nothing can be said to the provider about it.
    if (secrets === null) return fails(failed("PROVIDER_REFUSED", "Its secrets cannot be read", true))
    const { adapter } = place
    const context = yield* contextOf(channel.team_id, place)
    const subscription: Subscription = {
      id,
      target: row.target,
      secret: secrets.secret,
      externalChannelId: row.external_channel_id,
      externalResourceId: row.external_resource_id,
      expiresAt: row.expires_at,
      lastMessageNumber: row.last_message_number
    }
    const callback = channelUrl(ingress, secrets.token)
    const done = (given: AdapterContext): Effect.Effect<Outcome, ProviderError> => {
      if (step.do === "stop")
        return Effect.as(adapter.stop(given, subscription, callback), { did: "stop", id } as const)
      if (step.do === "provision") {
        return Effect.map(Effect.flatMap(adapter.provision(given, subscription, callback), bounded), (agreed) => ({
          did: "provision" as const,
          id,
          agreed
        }))
      }
      const { expires_at } = row
      return adapter.renew === null
        ? Effect.fail(failed("PROVIDER_REFUSED", "The protocol has no renewal", true))
        : Effect.map(Effect.flatMap(adapter.renew(given, subscription, callback), bounded), (agreed) => ({
            did: "renew" as const,
            id,
            expires_at,
            agreed
          }))
    }
    return yield* Effect.catch(within(channel.team_id, context, done), (error) => Effect.succeed(fails(error)))
  })

  /** Makes a step, and returns how it ended. */
  const perform = (
    channel: Channel,
    step: CallingStep
  ): Effect.Effect<Outcome, SqlError.SqlError, Database | Secrets> =>
    step.do === "poll" ? poll(channel, step) : call(channel, step)

  return { definitionOf, perform }
})
