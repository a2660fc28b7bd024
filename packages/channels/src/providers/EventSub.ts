import { needed, setting, text } from "@tidegate/connectors/Settings"
import { Effect, Schema } from "effect"
import type { Item } from "../Adapter.ts"
import { getJson } from "../adapters/Answers.ts"
import { eventSubAdapter } from "../adapters/EventSub.ts"
import { listOf, textOf, timeOf } from "../Foreign.ts"
import { itemId, itemOf } from "../Items.ts"
import { listPoller, newestPages } from "../pollers/Listing.ts"
import { withQuery } from "../Query.ts"
import type { SourceProvider } from "../SourceProvider.ts"
import { aText, maybeText, shape, theData } from "./Inputs.ts"

/* Twitch. Notifications and the Helix API give the same things with different members, so the items have members of their own. */

const UserId = text.check(Schema.isPattern(/^\d{1,32}$/, { message: "must be the number of a user" }))

const broadcaster = needed(
  UserId.annotate({ description: "The id of the broadcaster" }),
  "the number of the broadcaster"
)

const target = (type: string) => (inputs: Schema.JsonObject) => [
  { key: `${type}:${textOf(inputs, "broadcaster_user_id") ?? ""}` }
]

/** `event`: of a notification, which says `broadcaster_user_id` where a stream says `user_id`. */
const streamItem = (stream: unknown): Item | null => {
  const id = textOf(stream, "id")
  if (id === null) return null
  const of = (name: string) => textOf(stream, `broadcaster_${name}`) ?? textOf(stream, name)
  const startedAt = textOf(stream, "started_at")
  return itemOf(
    itemId("stream", id),
    {
      id,
      broadcaster_user_id: of("user_id"),
      broadcaster_user_login: of("user_login"),
      broadcaster_user_name: of("user_name"),
      type: textOf(stream, "type"),
      started_at: startedAt,
      data: stream
    },
    timeOf(startedAt)
  )
}

/** A notification has fractions of a second in its time and a list has none, so that the id has whole seconds. */
const followItem = (broadcasterId: string, follow: unknown): Item | null => {
  const [user, followedAt] = [textOf(follow, "user_id"), textOf(follow, "followed_at")]
  const at = timeOf(followedAt)
  if (user === null || at === null) return null
  return itemOf(
    itemId("follow", broadcasterId, user, String(Math.floor(at / 1_000))),
    {
      broadcaster_user_id: broadcasterId,
      user_id: user,
      user_login: textOf(follow, "user_login"),
      user_name: textOf(follow, "user_name"),
      followed_at: followedAt,
      data: follow
    },
    at
  )
}

const listed = (item: Item | null) => (item === null ? [] : [{ id: item.id, item: () => item }])

const streams = listPoller("eventsub", false, (context) => {
  const url = withQuery(`${context.baseUrl}/helix/streams`, { user_id: textOf(context.inputs, "broadcaster_user_id") })
  return Effect.map(getJson(context, url, "reading the streams"), (value) => ({
    entries: listOf(value, "data").flatMap((stream) => listed(streamItem(stream))),
    state: {}
  }))
})

const followers = listPoller("eventsub", true, (context, _, seen) => {
  const id = textOf(context.inputs, "broadcaster_user_id") ?? ""
  return Effect.map(
    newestPages(seen, (after) => {
      const url = withQuery(`${context.baseUrl}/helix/channels/followers`, { broadcaster_id: id, first: "100", after })
      return Effect.map(getJson(context, url, "reading the followers"), (value) => ({
        entries: listOf(value, "data").flatMap((follow) => listed(followItem(id, follow))),
        next: textOf(value, "pagination", "cursor")
      }))
    }),
    (entries) => ({ entries, state: {} })
  )
})

const followScope = "moderator:read:followers"

export const eventSub: SourceProvider = {
  key: "eventsub",
  name: "Twitch",
  description: "Streams and followers of a broadcaster, by EventSub webhooks.",
  icon_key: "video",
  manifest_version: "1.1.0",
  account: {
    // Webhooks need the token of an application, which no user's consent gives.
    connections: ["api_key"],
    origin: "https://api.twitch.tv",
    selfHosted: false,
    oauth2: null,
    appTokens: {
      tokenUrl: "https://id.twitch.tv/oauth2/token",
      revocationUrl: "https://id.twitch.tv/oauth2/revoke"
    },
    fields: [
      {
        key: "client_id",
        label: "Client id",
        type: "text",
        required: true,
        help: "The id of your application"
      },
      {
        key: "client_secret",
        label: "Client secret",
        type: "secret",
        required: false,
        help: "The application's secret: the gateway gets its tokens with it, and renews them"
      },
      {
        key: "token",
        label: "App access token",
        type: "secret",
        required: false,
        help: "Instead of the secret. It holds for about 60 days: connect the account again with a new one before"
      }
    ],
    headers: (token, fields) => ({
      authorization: `Bearer ${token}`,
      "client-id": textOf(fields, "client_id") ?? ""
    }),
    identity: null
  },
  triggers: [
    {
      key: "stream.online",
      name: "Stream started",
      description: "A broadcaster started a stream.",
      category: "video",
      version: "1.0.0",
      requiredScopes: [],
      inputs: { broadcaster_user_id: broadcaster },
      output: shape({
        id: aText("The stream"),
        broadcaster_user_id: maybeText("The broadcaster"),
        broadcaster_user_login: maybeText("The broadcaster's login"),
        broadcaster_user_name: maybeText("The broadcaster's name"),
        type: maybeText("live, or another type of stream"),
        started_at: maybeText("When it started"),
        data: theData("The event of the notification, or the stream of the API")
      }),
      primaryOutput: "data",
      sample: {
        inputs: { broadcaster_user_id: "1337" },
        output: {
          id: "9001",
          broadcaster_user_id: "1337",
          broadcaster_user_login: "cool_user",
          broadcaster_user_name: "Cool_User",
          type: "live",
          started_at: "2026-01-01T00:00:00Z",
          data: { id: "9001", type: "live", started_at: "2026-01-01T00:00:00Z" }
        }
      },
      adapter: eventSubAdapter({
        type: "stream.online",
        version: "1",
        targets: target("stream"),
        condition: (inputs) => ({ broadcaster_user_id: textOf(inputs, "broadcaster_user_id") ?? "" }),
        item: streamItem
      }),
      poller: streams
    },
    {
      key: "channel.follow",
      name: "Channel followed",
      description:
        "A user followed a broadcaster. The broadcaster or a moderator must have given the application its permission.",
      category: "video",
      version: "2.0.0",
      requiredScopes: [followScope],
      inputs: {
        broadcaster_user_id: broadcaster,
        moderator_user_id: setting(
          UserId.annotate({
            description: "The moderator who gave the permission; left out: the broadcaster"
          }),
          null
        )
      },
      output: shape({
        broadcaster_user_id: aText("The broadcaster"),
        user_id: aText("The follower"),
        user_login: maybeText("The follower's login"),
        user_name: maybeText("The follower's name"),
        followed_at: maybeText("When"),
        data: theData("The event of the notification, or the follower of the API")
      }),
      primaryOutput: "data",
      sample: {
        inputs: { broadcaster_user_id: "1337" },
        output: {
          broadcaster_user_id: "1337",
          user_id: "1234",
          user_login: "fan",
          user_name: "Fan",
          followed_at: "2026-01-01T00:00:00Z",
          data: { user_id: "1234", user_login: "fan", user_name: "Fan", followed_at: "2026-01-01T00:00:00Z" }
        }
      },
      adapter: eventSubAdapter({
        type: "channel.follow",
        version: "2",
        targets: target("follow"),
        condition: (inputs) => {
          const id = textOf(inputs, "broadcaster_user_id") ?? ""
          return { broadcaster_user_id: id, moderator_user_id: textOf(inputs, "moderator_user_id") ?? id }
        },
        item: (event) => followItem(textOf(event, "broadcaster_user_id") ?? "", event)
      }),
      poller: followers
    }
  ]
}
