import { Schema } from "effect"
import { urlFault } from "@tidegate/model/UrlFault"
import { OneOf } from "@tidegate/signatures/AuthSettings"
import { maskSecret } from "@tidegate/signatures/Masking"
import { answered, apiSender, json, judgeCall, waiting } from "./Api.ts"
import { type Answer, connector, payloadPerStep, type Verdict } from "./Connector.ts"
import { filled, filledJson, shortened, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { HttpUrl, needed, pacing, secret, setting } from "./Settings.ts"

/** More is refused by the API. */
const longestContent = 2_000
const longestName = 80
const mostEmbeds = 10

/** What follows the webhook's id in the path is its token; of a path of another form nothing is shown. */
const maskedUrl = (written: string): string => {
  const { origin, pathname } = new URL(written)
  const known = /^.*?\/webhooks\/[^/]+\//.exec(pathname)?.[0] ?? "/"
  const [token = ""] = pathname.slice(known.length).split("/")
  return origin + known + maskSecret(token)
}

/** Messages through the webhook of a channel (Discord). Who knows its URL may post: it is a secret. */
export const chatWebhook = connector({
  type: "CHAT_WEBHOOK",
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
        description: `The message; what is beyond ${longestContent} characters is cut off`
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
    ),
    ...pacing
  },
  check: ({ avatar_url }) =>
    avatar_url !== null && !avatar_url.includes("{{") && urlFault(avatar_url, 2_048) !== null
      ? [{ path: "config.avatar_url", message: "must be an absolute http or https URL, or a template of one" }]
      : [],
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
        const picture = avatar ? filled(fill, avatar, "avatar_url") : null
        const made = layout ? embedsOf(filledJson(fill, layout, "embeds")) : null
        return {
          url: confirmed(url),
          headers: [],
          contentType: json,
          body: JSON.stringify({
            content: shortened(filled(fill, content, "content_template"), longestContent),
            ...(name ? { username: shortened(filled(fill, name, "username"), longestName) } : {}),
            ...(picture === null ? {} : { avatar_url: picture }),
            ...(made === null ? {} : { embeds: made }),
            // Without it a payload that holds @everyone would notify everyone.
            allowed_mentions: { parse: allowed_mentions }
          }),
          fetched: [
            ...(picture === null ? [] : [fetchedUrl(picture, "avatar_url")]),
            ...(made ?? []).flatMap(picturesOf)
          ]
        }
      }
    })
  }
})

/** It answers with the message only when it is asked to wait for it; else with 204, before it knows. */
const confirmed = (written: string): string => {
  const url = new URL(written)
  url.searchParams.set("wait", "true")
  return url.href
}

/** A URL that the API fetches: from the public network alone. */
const fetchedUrl = (written: string, setting: string): string => {
  if (urlFault(written, 2_048) !== null) throw new Unrenderable(`config.${setting} does not make a URL of this event`)
  return written
}

/** What the API fetches of an embed. */
const picturesOf = (embed: Embed): ReadonlyArray<string> => {
  const { author, footer, image, thumbnail, video } = embed
  const places = [
    ...[image, thumbnail, video].map((one) => memberOf(one, "url")),
    ...[author, footer].map((one) => memberOf(one, "icon_url"))
  ]
  return places
    .filter((one) => one !== undefined && one !== null)
    .map((one) => fetchedUrl(typeof one === "string" ? one : "", "embeds"))
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Embed)[name] : undefined

type Embed = Readonly<Record<string, unknown>>

const embedsOf = (made: unknown): ReadonlyArray<Embed> => {
  const embeds = Array.isArray(made) ? made : [made]
  if (!embeds.every((one) => typeof one === "object" && one !== null && !Array.isArray(one))) {
    throw new Unrenderable("config.embeds makes neither an object nor a list of them")
  }
  if (embeds.length > mostEmbeds) throw new Unrenderable(`config.embeds makes more than ${mostEmbeds} embeds`)
  return embeds as ReadonlyArray<Embed>
}

/** `/api/v10/webhooks/…`; a URL as the channel's settings show it names none, and is taken for the API's default. */
const defaultVersion = 6
const versionOf = (url: string): number => {
  const [, version] = /^\/api\/v(\d{1,3})\//.exec(new URL(url).pathname) ?? []
  return version === undefined ? defaultVersion : Number(version)
}

/** What it waits for is in seconds from version 8 on, and in milliseconds before, in its body and in `retry-after` alike. */
const judgeOf =
  (version: number) =>
  (answer: Answer): Verdict => {
    const { code, retry_after } = answered(answer)
    const verdict = judgeCall(answer, code)
    if (answer.status !== 429) return verdict
    const resetAfter = answer.headers["x-ratelimit-reset-after"]
    // In seconds in all versions.
    if (typeof resetAfter === "string" && /^\d{1,9}(\.\d{1,9})?$/.test(resetAfter)) {
      return waiting(verdict, Number(resetAfter))
    }
    // Without it, the answer is not the API's but its proxy's, and keeps to HTTP.
    if (typeof retry_after !== "number") return verdict
    // A fraction is one of a second in any case.
    return waiting(verdict, version < 8 && Number.isInteger(retry_after) ? retry_after / 1000 : retry_after)
  }
