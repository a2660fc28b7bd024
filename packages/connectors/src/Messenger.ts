import { Schema } from "effect"
import { OneOf } from "@tidegate/model/AuthSettings"
import { type Escape, xmlEscape } from "@tidegate/interpolation/Escape"
import { answered, apiSender, beginsAsObject, json, judgeCall, located, proved, rejected, waiting } from "./Api.ts"
import { type Answer, connector, type Verdict } from "./Connector.ts"
import { pointsOf, shortenedPoints } from "./Cutting.ts"
import { type DeliveryTemplate, type Fill, filled, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { needed, setting } from "./Settings.ts"

const api = "https://api.telegram.org"

/** The API refuses longer texts. */
const longestText = 4_096

/** Escapes values, so that they contain no markup. */
const escapes: Readonly<Record<"HTML" | "MarkdownV2", Escape>> = {
  HTML: xmlEscape,
  MarkdownV2: { text: (text) => text.replaceAll(/[_*[\]()~`>#+\-=|{}.!\\]/g, String.raw`\$&`), values: false }
}

/** Length of a text after its markup is parsed; an upper bound where the exact length is unknown. */
const lengths: Readonly<Record<keyof typeof escapes, (text: string) => number>> = {
  HTML: (text) =>
    pointsOf(text.replaceAll(/<[^<>]*>/g, "").replaceAll(/&(?:lt|gt|amp|quot|#\d{1,7}|#x[\da-f]{1,6});/gi, "&")),
  MarkdownV2: (text) => pointsOf(text.replaceAll(/\\([\s\S])/g, "$1"))
}

/** Cutting a text with markup anywhere would break the markup. So its values are cut, all to the same length, as long as possible. */
const marked = (fill: Fill, one: DeliveryTemplate, mode: keyof typeof escapes): string => {
  const escape = escapes[mode]
  const lengthOf = lengths[mode]
  const text = filled(fill, one, "text_template", escape)
  if (lengthOf(text) <= longestText) return text
  const cutTo = (longest: number): string =>
    fill(one, { ...escape, text: (value) => escape.text(shortenedPoints(value, longest)) })
      .trim()
      .toWellFormed()
  let [fits, tooLong] = [0, longestText]
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2)
    if (lengthOf(cutTo(middle)) <= longestText) fits = middle
    else tooLong = middle
  }
  const made = cutTo(fits)
  if (lengthOf(made) > longestText || made === "") {
    throw new Unrenderable(`config.text_template makes more than ${longestText} characters of this event`)
  }
  return made
}

const YesOrNo = (description: string) =>
  setting(Schema.Boolean.annotate({ description }), false, "must be true or false")

/** Sends messages of a bot to a chat (Telegram, sendMessage). The token is part of the URL, so attempts show a masked URL. */
export const messenger = connector({
  type: "MESSENGER_MESSAGE",
  name: "Telegram",
  description: "Sends a message to a chat as a bot (Telegram).",
  settings: {
    chat_id: needed(
      TemplateText(256).annotate({
        description: "Id of a chat, or the @name of a channel",
        examples: ["-1001234567890"]
      }),
      "the id of a chat, or the @name of a channel"
    ),
    text_template: needed(
      TemplateText(16_384).annotate({
        description: `What is beyond ${longestText} characters is cut off; of a text that is marked up, of its values`
      }),
      "the text of the message"
    ),
    parse_mode: setting(
      OneOf(["HTML", "MarkdownV2"]).annotate({ description: "The markup of the text. Null: none" }),
      null
    ),
    disable_link_previews: YesOrNo("Whether links are shown without a preview"),
    disable_notification: YesOrNo("Whether it is sent without a sound")
  },
  pace: { perSecond: 1, because: "the API takes one message a second to a chat, and 30 to all" },
  auths: ["CHAT_BOT_TOKEN"],
  origins: [api],
  credentials: "mask",
  example: {
    name: "ops-chat",
    type: "MESSENGER_MESSAGE",
    config: {
      chat_id: "-1001234567890",
      text_template: "Order {{payload.id}} has arrived",
      auth_type: "CHAT_BOT_TOKEN",
      auth: { bot_token: "123456:token" }
    }
  },
  open: (
    { chat_id, disable_link_previews, disable_notification, parse_mode, text_template },
    { settings },
    origins
  ) => {
    const origin = origins(api)
    const token = typeof settings["bot_token"] === "string" ? settings["bot_token"] : ""
    const to = template(chat_id)
    const text = template(text_template)
    return apiSender({
      shownUrl: `${origin}/bot****/sendMessage`,
      judge,
      call: (fill) => ({
        // The encoding keeps the token within one path segment, whatever it contains.
        url: `${origin}/bot${encodeURIComponent(token).replaceAll("%3A", ":")}/sendMessage`,
        headers: [],
        contentType: json,
        body: JSON.stringify({
          chat_id: filled(fill, to, "chat_id"),
          text:
            parse_mode === null
              ? shortenedPoints(filled(fill, text, "text_template"), longestText)
              : marked(fill, text, parse_mode),
          ...(parse_mode === null ? {} : { parse_mode }),
          ...(disable_link_previews ? { link_preview_options: { is_disabled: true } } : {}),
          disable_notification
        })
      })
    })
  }
})

const judge = (answer: Answer): Verdict => {
  // The answer repeats the message with its links, so it may be longer than the kept part.
  if (answer.status === 200 && beginsAsObject(answer, /^\s*\{\s*"ok"\s*:\s*true\b/)) return "successful"
  const { description, error_code, ok, parameters } = answered(answer)
  // The method exists, so the missing part is the bot: its token is wrong.
  const verdict = answer.status === 404 ? rejected("HTTP 404", error_code) : judgeCall(answer, error_code)
  const seconds =
    typeof parameters === "object" && parameters !== null && "retry_after" in parameters ? parameters.retry_after : null
  // The waiting time is only in the body.
  return waiting(located(proved(answer, verdict, ok === true), wordOf(answer.status, description)), seconds)
}

/** Telegram's reason for a refused call, if it quotes nothing of the call. */
const wordOf = (status: number, description: unknown): string | null =>
  status === 400 && typeof description === "string" && /^Bad Request: [A-Za-z ',-]{1,100}$/.test(description)
    ? description
    : null
