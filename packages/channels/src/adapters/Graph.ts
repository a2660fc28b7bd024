import { singleParameter } from "@tidegate/verification/providers/Presented"
import { parseJson } from "@tidegate/json/JsonText"
import { Effect, type Schema } from "effect"
import type {
  Adapter,
  CallbackMessage,
  Context,
  Notification,
  Provisioned,
  ProviderAnswer,
  ProviderError,
  Subscription,
  Target
} from "../Adapter.ts"
import { listOf, memberOf, textOf, timeOf } from "../Foreign.ts"
import { maxFatBytes, maxItems } from "../Items.ts"
import { getJson, invalid, jsonOf, remove, sendJson } from "./Answers.ts"
import { isReflected, isToken, reflecting, refusedHandshake, rejected, reply } from "./Replies.ts"

/**
 * Subscriptions of Microsoft Graph (https://learn.microsoft.com/graph/change-notifications-delivery-webhooks). The service validates the
 * URL while it creates the subscription. Notifications have ids, but not what changed, so a delta query reads it. Each repeats the
 * `clientState` of its subscription, which is the subscription's secret.
 */

export interface GraphResource {
  readonly targets: (inputs: Schema.JsonObject) => ReadonlyArray<Target>
  /** The path of the resource, as subscriptions name it. */
  readonly resource: (inputs: Schema.JsonObject, target: string) => string
  readonly changeType: "created" | "updated"
  /** The longest life that Graph allows for the resource (ms). */
  readonly longestLife: number
}

const subscriptions = ({ baseUrl }: Context): string => `${baseUrl}/v1.0/subscriptions`

const provisioned = (subscription: unknown, what: string): Effect.Effect<Provisioned, ProviderError> => {
  const id = textOf(subscription, "id")
  const expiresAt = timeOf(textOf(subscription, "expirationDateTime"))
  return id === null || id.length > 256 || expiresAt === null
    ? Effect.fail(invalid(`${what}: the answer has no id or expirationDateTime`))
    : Effect.succeed({
        externalChannelId: id,
        externalResourceId: textOf(subscription, "resource"),
        expiresAt,
        state: "active"
      })
}

const answeredBy = (answer: ProviderAnswer, what: string): Effect.Effect<Provisioned, ProviderError> =>
  Effect.flatMap(jsonOf(answer, what), (subscription) => provisioned(subscription, what))

/** The subscription that notifies a callback; undefined: there is none. */
const find = (context: Context, callback: string): Effect.Effect<unknown, ProviderError> =>
  Effect.map(getJson(context, subscriptions(context), "listing the subscriptions"), (list) =>
    listOf(list, "value").find((one) => textOf(one, "notificationUrl") === callback)
  )

const one = (context: Context, id: string): string => `${subscriptions(context)}/${encodeURIComponent(id)}`

const lifecycles = {
  subscriptionRemoved: "revoked",
  reauthorizationRequired: "reauthorize",
  missed: "missed"
} as const

const received = ({ secret }: Subscription, { body, method, query }: CallbackMessage): Notification => {
  const validation = singleParameter(query, "validationToken")
  if (validation !== null) {
    if (!isReflected(validation)) return refusedHandshake(400, "the validation token is no plain text")
    return { kind: "handshake", accepted: true, reason: null, withinCreation: true, reply: reflecting(validation) }
  }
  if (method !== "POST" || body.length > maxFatBytes) return rejected(202, "the request is no notification")
  const parsed = parseJson(body)
  const notifications = parsed.kind === "json" ? listOf(parsed.value, "value").slice(0, maxItems) : []
  // Notifications of other subscriptions are ignored. The service gets 202 nevertheless, because otherwise it would repeat the whole batch.
  const ours = notifications.filter((notification) => isToken(memberOf(notification, "clientState"), secret))
  if (ours.length === 0) return rejected(202, "no notification has the subscription's clientState")
  const events = new Set(ours.map((notification) => textOf(notification, "lifecycleEvent")))
  for (const [event, what] of Object.entries(lifecycles)) {
    if (events.has(event)) return { kind: "lifecycle", what, reason: event, reply: reply(202) }
  }
  return { kind: "dirty", messageNumber: null, occurredAt: null, reply: reply(202) }
}

export const graphAdapter = ({ changeType, longestLife, resource, targets }: GraphResource): Adapter => {
  const until = ({ now }: Context): string => new Date(now + longestLife).toISOString()
  return {
    key: "graph",
    targets,
    provision: (context, { secret, target }, callback) => {
      const what = "creating the subscription"
      const asked = {
        changeType,
        notificationUrl: callback,
        lifecycleNotificationUrl: callback,
        resource: resource(context.inputs, target),
        expirationDateTime: until(context),
        clientState: secret
      }
      return Effect.gen(function* () {
        // Graph creates a second subscription if the creation is repeated. The first one may exist already, if its answer was lost.
        const known = yield* find(context, callback)
        if (known !== undefined) return yield* provisioned(known, what)
        return yield* answeredBy(yield* sendJson(context, "POST", subscriptions(context), asked, what), what)
      })
    },
    renew: (context, { externalChannelId, externalResourceId }) => {
      const what = "renewing the subscription"
      return Effect.gen(function* () {
        if (externalChannelId === null) return yield* invalid(`${what}: its id is not known`)
        const answer = yield* sendJson(
          context,
          "PATCH",
          one(context, externalChannelId),
          { expirationDateTime: until(context) },
          what
        )
        return { ...(yield* answeredBy(answer, what)), externalResourceId }
      })
    },
    stop: (context, { externalChannelId }, callback) =>
      Effect.gen(function* () {
        const id = externalChannelId ?? textOf(yield* find(context, callback), "id")
        if (id !== null) yield* remove(context, one(context, id), "deleting the subscription")
      }),
    receive: (subscription, _, message) => received(subscription, message)
  }
}
