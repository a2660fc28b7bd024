import { Effect, type Schema } from "effect"
import type {
  Adapter,
  CallbackMessage,
  Context,
  Notification,
  ProviderError,
  Subscription,
  Target
} from "../Adapter.ts"
import { textOf } from "../Foreign.ts"
import { answered, invalid, jsonOf, sendJson } from "./Answers.ts"
import { isToken, refusedHandshake, rejected, reply } from "./Replies.ts"

/**
 * Watch channels of Google's APIs (https://developers.google.com/workspace/calendar/api/guides/push): a notification has no content, it
 * says that something has changed. The channel's id is the subscription's, its token is the subscription's secret. There is no renewal:
 * a new channel replaces the old one.
 */

export interface Watched {
  readonly targets: (inputs: Schema.JsonObject) => ReadonlyArray<Target>
  /** Where a channel for a target is created, and where channels are stopped. */
  readonly watchUrl: (context: Context, target: string) => Effect.Effect<string, ProviderError>
  readonly stopUrl: (context: Context) => string
}

/** The longest life of a channel. */
const week = 604_800_000

const received = (subscription: Subscription, message: CallbackMessage): Notification => {
  const { headers, method } = message
  const state = headers["x-goog-resource-state"]
  const isOurs =
    method === "POST" &&
    isToken(headers["x-goog-channel-token"], subscription.secret) &&
    headers["x-goog-channel-id"] === subscription.id
  if (state === "sync") {
    if (!isOurs) return refusedHandshake(404, "the channel's id or token is wrong")
    const expiresAt = Date.parse(headers["x-goog-channel-expiration"] ?? "")
    return {
      kind: "handshake",
      accepted: true,
      reason: null,
      ...(Number.isNaN(expiresAt) ? {} : { expiresAt }),
      reply: reply(200)
    }
  }
  if (!isOurs || state === undefined) return rejected(404, "the channel's id or token is wrong")
  const number = /^\d{1,15}$/.exec(headers["x-goog-message-number"] ?? "")
  const messageNumber = number === null ? null : Number(number[0])
  // Message numbers grow. A message whose number is not higher than the last one was sent twice or came late, and a poll has already read its change.
  const isOld = messageNumber !== null && messageNumber <= (subscription.lastMessageNumber ?? 0)
  return isOld
    ? { kind: "ping", reply: reply(200) }
    : { kind: "dirty", messageNumber, occurredAt: null, reply: reply(200) }
}

export const watchAdapter = ({ stopUrl, targets, watchUrl }: Watched): Adapter => ({
  key: "watch",
  targets,
  provision: (context, { id, secret, target }, callback) =>
    Effect.gen(function* () {
      const what = "creating the watch channel"
      const answer = yield* sendJson(
        context,
        "POST",
        yield* watchUrl(context, target),
        { id, type: "web_hook", address: callback, token: secret, expiration: String(context.now + week) },
        what
      )
      const channel = yield* jsonOf(answer, what)
      const resource = textOf(channel, "resourceId")
      const expiration = textOf(channel, "expiration")
      if (resource === null || expiration === null || !/^\d{1,15}$/.test(expiration)) {
        return yield* invalid(`${what}: the answer has no resourceId or expiration`, answer.status)
      }
      return {
        externalChannelId: id,
        externalResourceId: resource,
        expiresAt: Number(expiration),
        state: "verifying"
      }
    }),
  renew: null,
  stop: (context, { externalResourceId, id }) =>
    // Without the resource's id a channel cannot be stopped. It ends by itself within a week.
    externalResourceId === null
      ? Effect.void
      : Effect.asVoid(
          answered(
            context,
            {
              method: "POST",
              url: stopUrl(context),
              headers: { "content-type": "application/json" },
              body: JSON.stringify({ id, resourceId: externalResourceId }),
              authorized: true
            },
            "stopping the watch channel",
            [404, 410]
          )
        ),
  receive: (subscription, _, message) => received(subscription, message)
})
