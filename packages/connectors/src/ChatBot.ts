import { type Escape, jsonEscape } from "@tidegate/interpolation/Escape"
import {
  answered,
  apiSender,
  beginsAsObject,
  flat,
  json,
  judgeCall,
  located,
  proved,
  refused,
  rejected
} from "./Api.ts"
import { type Answer, connector, type Verdict } from "./Connector.ts"
import { shortenedPoints } from "./Cutting.ts"
import { filled, filledJson, template, TemplateText } from "./Rendering.ts"
import { faultsOfBlanks, needed, setting } from "./Settings.ts"
import { blocksOf } from "./SlackBlocks.ts"

const api = "https://slack.com"

/** The API cuts longer texts, at any position. */
const longestText = 40_000

/** Error codes that concern the credentials, and codes after which the same call may succeed later. */
const ofCredentials = new Set([
  "access_denied",
  "account_inactive",
  "ekm_access_denied",
  "invalid_auth",
  "missing_scope",
  "no_permission",
  "not_allowed_token_type",
  "not_authed",
  "token_expired",
  "token_revoked"
])
const passing = new Set([
  "fatal_error",
  "internal_error",
  "message_limit_exceeded",
  "rate_limited",
  "ratelimited",
  "request_timeout",
  "service_unavailable"
])

/** Escapes a value, so that it cannot mention a person or a channel, or hide a link behind another name. */
const unmarked = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
const inText: Escape = { text: unmarked, values: false }
const inBlocks: Escape = { text: (text) => jsonEscape.text(unmarked(text)), values: false }

/** Sends messages of a bot to a channel (Slack, chat.postMessage). */
export const chatBot = connector({
  type: "CHAT_BOT",
  name: "Slack",
  description: "Posts to a channel as a bot (Slack).",
  settings: {
    channel: needed(
      TemplateText(256).annotate({
        description: "Id or name of a channel; an id for private ones",
        examples: ["C0123456789"]
      }),
      "the id or the name of a channel"
    ),
    text_template: needed(
      TemplateText(16_384),
      "the text of the message, which is shown in notifications where there are blocks"
    ),
    blocks_template: setting(
      TemplateText(65_536).annotate({
        description: "JSON: a list of blocks, or an object with `blocks`; placeholders stand in its texts"
      }),
      null
    )
  },
  pace: { perSecond: 1, because: "the API takes one message a second to a channel" },
  check: (settings) => faultsOfBlanks(settings, "blocks_template"),
  auths: ["CHAT_BOT_TOKEN"],
  origins: [api],
  credentials: "mask",
  example: {
    name: "ops-channel",
    type: "CHAT_BOT",
    config: {
      channel: "C0123456789",
      text_template: "Order {{payload.id}} has arrived",
      auth_type: "CHAT_BOT_TOKEN",
      auth: { bot_token: "xoxb-0000-0000" }
    }
  },
  open: ({ blocks_template, channel, text_template }, { headers }, origins) => {
    const url = `${origins(api)}/api/chat.postMessage`
    const to = template(channel)
    const text = template(text_template)
    const layout = blocks_template === null ? null : template(blocks_template)
    return apiSender({
      shownUrl: url,
      judge,
      call: (fill) => ({
        url,
        headers: flat(headers),
        contentType: json,
        body: JSON.stringify({
          channel: filled(fill, to, "channel"),
          text: shortenedPoints(filled(fill, text, "text_template", inText), longestText),
          ...(layout === null ? {} : laidOut(blocksOf(filledJson(fill, layout, "blocks_template", inBlocks))))
        })
      })
    })
  }
})

/** Without blocks the message consists of the text. */
const laidOut = (blocks: ReadonlyArray<unknown>) => (blocks.length === 0 ? {} : { blocks })

/** Slack answers 200 and reports success or failure in the body. */
const judge = (answer: Answer): Verdict => {
  // The answer repeats the message, so it may be longer than the kept part.
  if (answer.status === 200 && beginsAsObject(answer, /^\s*\{\s*"ok"\s*:\s*true\b/)) return "successful"
  const { error, ok, response_metadata } = answered(answer)
  const verdict = proved(answer, judgeCall(answer, error), typeof ok === "boolean")
  if (verdict !== "successful" || ok === true) return verdict
  if (typeof error !== "string") return refused("no answer that can be read", false)
  return ofCredentials.has(error)
    ? rejected("the call", error)
    : located(refused(error, !passing.has(error)), placeIn(response_metadata))
}

/** The block that Slack refuses: `[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]`. */
const placeIn = (metadata: unknown): string | null => {
  const messages =
    typeof metadata === "object" && metadata !== null && "messages" in metadata ? metadata.messages : null
  const [first] = Array.isArray(messages) ? (messages as ReadonlyArray<unknown>) : []
  return typeof first === "string" ? first.replace(/^\[ERROR\] /, "") : null
}
