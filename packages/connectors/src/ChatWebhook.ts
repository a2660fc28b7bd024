import { Schema } from "effect"
import { urlFault } from "@tidegate/model/UrlFault"
import { OneOf } from "@tidegate/model/AuthSettings"
import { maskSecret } from "@tidegate/redaction/Masking"
import { answered, apiSender, beginsAsObject, json, judgeCall, located, proved, waiting } from "./Api.ts"
import { type Answer, connector, payloadPerStep, type Verdict } from "./Connector.ts"
import { shortenedPoints } from "./Cutting.ts"
import { embedsOf, fetchedUrl, picturesOf } from "./DiscordEmbeds.ts"
import { type DeliveryTemplate, type Fill, filledJson, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { faultsOfBlanks, HttpUrl, needed, secret, setting } from "./Settings.ts"

/** The API refuses longer messages. */
const longestContent = 2_000
const longestName = 80

/** Masks the token, which follows the webhook's id in the path. Of a path in another form nothing is shown. */
const maskedUrl = (written: string): string => {
  const { origin, pathname } = new URL(written)
  const known = /^.*?\/webhooks\/[^/]+\//.exec(pathname)?.[0] ?? "/"
  const [token = ""] = pathname.slice(known.length).split("/")
  return origin + known + maskSecret(token)
}

/** Sends messages through the webhook of a channel (Discord). The URL is a secret, because anybody who knows it can post. */
export const chatWebhook = connector({
  type: "CHAT_WEBHOOK",
  name: "Discord",
  description: "Posts to a channel through its webhook (Discord).",
  settings: {
    url: secret(
      needed(
        HttpUrl(2048).annotate({
          description: "The webhook's execute URL. Encrypted at rest, masked on read; writing the mask back keeps it",
          examples: ["https://discord.com/api/webhooks/1234/token"]
        }),
        "the execute URL of a webhook"
      ),
      maskedUrl
    ),
    content_template: setting(
      TemplateText(16_384).annotate({
        description: `The message; what is beyond ${longestContent} characters is cut off. It may be empty where there are embeds`
      }),
      "Event {{event_id}}\n{{payload}}"
    ),
    username: setting(TemplateText(256).annotate({ description: "The name it is posted under" }), null),
    avatar_url: setting(TemplateText(2_048).annotate({ description: "The picture beside it" }), null),
    embeds: setting(TemplateText(65_536).annotate({ description: "JSON: an embed, or a list of at most ten" }), null),
    allowed_mentions: setting(
      Schema.Array(OneOf(["roles", "users", "everyone"]))
        .annotate({
          message: "must be a list of roles, users, everyone",
          description: "Who may be notified by the message"
        })
        .check(Schema.isMaxLength(3, { message: "must be at most 3 words" })),
      [],
      "must be a list of roles, users, everyone"
    )
  },
  pace: { perSecond: 2, because: "the API takes five messages in two seconds through a webhook" },
  check: (settings) => {
    const { avatar_url, embeds } = settings
    return [
      ...(avatar_url !== null && !avatar_url.includes("{{") && urlFault(avatar_url, 2_048) !== null
        ? [{ path: "config.avatar_url", message: "must be an absolute http or https URL, or a template of one" }]
        : []),
      ...faultsOfBlanks(settings, "embeds", ...(embeds === null ? (["content_template"] as const) : []))
    ]
  },
  auths: ["NO_AUTH"],
  credentials: "mask",
  perStep: payloadPerStep("What {{payload}} stands for where there is no content_template"),
  example: {
    name: "alerts-channel",
    type: "CHAT_WEBHOOK",
    config: { url: "https://discord.com/api/webhooks/1234/token", content_template: "{{payload.message}}" }
  },
  open: ({ allowed_mentions, avatar_url, content_template, embeds, url, username }) => {
    const content = template(content_template)
    const [name, avatar, layout] = [username, avatar_url, embeds].map((text) => (text === null ? null : template(text)))
    return apiSender({
      shownUrl: maskedUrl(url),
      judge: judgeOf(versionOf(url)),
      call: (fill) => {
        const text = shortenedPoints(textOf(fill, content), longestContent)
        const by = name ? shortenedPoints(textOf(fill, name), longestName) : ""
        const picture = avatar ? textOf(fill, avatar) : ""
        const made = layout ? embedsOf(filledJson(fill, layout, "embeds")) : []
        if (text === "" && made.length === 0) {
          throw new Unrenderable(
            layout
              ? "config.content_template and config.embeds make an empty message of this event"
              : "config.content_template makes an empty text of this event"
          )
        }
        return {
          url: confirmed(url),
          headers: [],
          contentType: json,
          body: JSON.stringify({
            ...(text === "" ? {} : { content: text }),
            ...(by === "" ? {} : { username: by }),
            ...(picture === "" ? {} : { avatar_url: picture }),
            ...(made.length === 0 ? {} : { embeds: made }),
            // Without this, a payload with @everyone would notify everyone.
            allowed_mentions: { parse: allowed_mentions }
          }),
          fetched: [...(picture === "" ? [] : [fetchedUrl(picture, "avatar_url")]), ...made.flatMap(picturesOf)]
        }
      }
    })
  }
})

/** A text that may be empty: then the webhook's own value is used, or none. */
const textOf = (fill: Fill, one: DeliveryTemplate): string => fill(one).trim().toWellFormed()

/** Discord answers with the message only on request (`wait`); otherwise it answers 204 before it knows the result. */
const confirmed = (written: string): string => {
  const url = new URL(written)
  url.searchParams.set("wait", "true")
  return url.href
}

/** `/api/v10/webhooks/…`. A URL copied from the channel's settings has no version, and means the API's default. */
const defaultVersion = 6
const versionOf = (url: string): number => {
  const [, version] = /^\/api\/v(\d{1,3})\//.exec(new URL(url).pathname) ?? []
  return version === undefined ? defaultVersion : Number(version)
}

/** The part of a message that Discord refuses: `embeds.0.title BASE_TYPE_MAX_LENGTH`; null if it names none. */
const placeIn = (errors: unknown, path: ReadonlyArray<string> = []): string | null => {
  if (typeof errors !== "object" || errors === null || path.length > 8) return null
  const { _errors: own } = errors as { readonly _errors?: unknown }
  const [first] = Array.isArray(own) ? (own as ReadonlyArray<unknown>) : []
  if (typeof first === "object" && first !== null && "code" in first) {
    return `${path.join(".") || "message"} ${String(first.code)}`
  }
  const [next] = Object.entries(errors)
  return next === undefined ? null : placeIn(next[1], [...path, next[0]])
}

/** The waiting time is in seconds from version 8 on, and in milliseconds before, both in the body and in `retry-after`. */
const judgeOf =
  (version: number) =>
  (answer: Answer): Verdict => {
    const { code, errors, id, retry_after } = answered(answer)
    const isMade = typeof id === "string" || beginsAsObject(answer)
    const verdict = located(proved(answer, judgeCall(answer, code), isMade), placeIn(errors))
    if (answer.status !== 429) return verdict
    const resetAfter = answer.headers["x-ratelimit-reset-after"]
    // In seconds in all versions.
    if (typeof resetAfter === "string" && /^\d{1,9}(\.\d{1,9})?$/.test(resetAfter)) {
      return waiting(verdict, Number(resetAfter))
    }
    // Without it the answer comes from Discord's proxy, not from the API, and follows HTTP.
    if (typeof retry_after !== "number") return verdict
    // A value with a fraction is in seconds in any version.
    return waiting(verdict, version < 8 && Number.isInteger(retry_after) ? retry_after / 1000 : retry_after)
  }
