import { Schema } from "effect"
import { OneOf } from "@tidegate/signatures/AuthSettings"
import { type Escape, xmlEscape } from "@tidegate/templates/Escape"
import { answered, apiSender, json, judgeCall, rejected, waiting } from "./Api.ts"
import { type Answer, connector, type Verdict } from "./Connector.ts"
import {
  type DeliveryTemplate,
  type Fill,
  filled,
  shortened,
  template,
  TemplateText,
  Unrenderable
} from "./Rendering.ts"
import { needed, pacingOf, setting } from "./Settings.ts"

const api = "https://api.telegram.org"

/** More is refused by the API. */
const longestText = 4_096

/** What a value is not taken for in a text that is marked up. */
const escapes: Readonly<Record<"HTML" | "MarkdownV2", Escape>> = {
  HTML: xmlEscape,
  MarkdownV2: { text: (text) => text.replaceAll(/[_*[\]()~`>#+\-=|{}.!\\]/g, String.raw`\$&`), values: false }
}

/** Cut anywhere, marked up text would be none. */
const marked = (fill: Fill, one: DeliveryTemplate, mode: keyof typeof escapes): string => {
  const text = filled(fill, one, "text_template", escapes[mode])
  if (text.length > longestText) {
    throw new Unrenderable(`config.text_template makes more than ${longestText} characters of this event`)
  }
  return text
}

const YesOrNo = (description: string) =>
  setting(Schema.Boolean.annotate({ description }), false, "must be true or false")

/** Messages of a bot to a chat (Telegram, sendMessage). The token is part of the URL, which is why no attempt shows it whole. */
export const messenger = connector({
  type: "MESSENGER_MESSAGE",
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
        description: `What is beyond ${longestText} characters is cut off, unless it is marked up`
      }),
      "the text of the message"
    ),
    parse_mode: setting(
      OneOf(["HTML", "MarkdownV2"]).annotate({ description: "How the text is marked up; null: not at all" }),
      null
    ),
    disable_link_previews: YesOrNo("Whether links are shown without a preview"),
    disable_notification: YesOrNo("Whether it is sent without a sound"),
    ...pacingOf(1)
  },
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
        // A token is one part of the path, whatever is written into it.
        url: `${origin}/bot${encodeURIComponent(token).replaceAll("%3A", ":")}/sendMessage`,
        headers: [],
        contentType: json,
        body: JSON.stringify({
          chat_id: filled(fill, to, "chat_id"),
          text:
            parse_mode === null
              ? shortened(filled(fill, text, "text_template"), longestText)
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
  const { error_code, parameters } = answered(answer)
  // The method is there: what is not found is the bot, by its token.
  const verdict = answer.status === 404 ? rejected("HTTP 404", error_code) : judgeCall(answer, error_code)
  const seconds =
    typeof parameters === "object" && parameters !== null && "retry_after" in parameters ? parameters.retry_after : null
  // It is said in the body alone.
  return waiting(verdict, seconds)
}
