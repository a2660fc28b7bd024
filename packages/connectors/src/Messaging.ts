import { Schema } from "effect"
import { urlFault } from "@tidegate/model/UrlFault"
import { answered, apiSender, flat, form, judgeCall, proved, refused, rejected } from "./Api.ts"
import { type Answer, connector, type OpenAuth, type Verdict } from "./Connector.ts"
import { shortened } from "./Cutting.ts"
import type { Origins } from "./Origins.ts"
import {
  type DeliveryTemplate,
  type Fill,
  filled,
  filledJson,
  template,
  TemplateText,
  Unrenderable
} from "./Rendering.ts"
import { faultsOfBlanks, type FieldErrors, needed, type Pace, setting, text } from "./Settings.ts"

/** Sends text messages by an API (Twilio, Messages). */

const api = "https://api.twilio.com"

/** The API refuses longer texts. */
const longestBody = 1_600

const sid = (prefix: string, description: string) =>
  setting(
    text
      .check(
        Schema.isPattern(new RegExp(`^${prefix}[0-9A-Za-z]{1,64}$`), {
          message: `must be an id that begins with ${prefix}`
        })
      )
      .annotate({ description }),
    null
  )

/** An E.164 number, and an address on a chat channel. */
const number = /^\+[1-9]\d{6,14}$/
const ofChannel = /^(?:(?:whatsapp|rcs):\+[1-9]\d{6,14}|messenger:[\w.-]{1,64})$/
/** Senders that are no numbers: short codes and names. */
const senderName = /^[A-Za-z0-9 &+_.-]{1,20}$/

/** Removes the spaces, dots, dashes and brackets with which people write numbers. */
const compact = (text: string): string => (/^[a-z]*:?\+[\d ().-]+$/.test(text) ? text.replaceAll(/[ ().-]/g, "") : text)

/** Whether a text is one recipient: a number, or, if `chats` is set, an address on a chat channel. */
const isRecipient = (text: string, chats: boolean): boolean => number.test(text) || (chats && ofChannel.test(text))

const notNumber = "must be one number of E.164, like +15005550006, or a template of one"
const notChat = "must be one number of E.164, like +15005550006 or whatsapp:+15005550006, or a template of one"

const Recipient = (chats: boolean) =>
  TemplateText(256).check(
    Schema.makeFilter(
      (to: string) => to.includes("{{") || isRecipient(compact(to), chats) || (chats ? notChat : notNumber)
    )
  )

const sender = {
  to: needed(
    Recipient(false).annotate({ description: "One number, in E.164", examples: ["+15005550006"] }),
    "the number of the recipient"
  ),
  from: setting(
    TemplateText(256).annotate({ description: "A number of the account; needed without a messaging service" }),
    null
  ),
  messaging_service_sid: sid("MG", "The messaging service that chooses the sender")
}

const Body = TemplateText(16_384).annotate({
  description: `{{message}} stands for the payload's own member; what is beyond ${longestBody} characters is cut off`
})

const bodied = { ...sender, body_template: needed(Body, "the text of the message") }

const perNumber: Pace = {
  perSecond: 1,
  because: "a long number sends one message a second; the API queues more, and drops what waits too long"
}

const Media = TemplateText(2_048)
const manyMedia = "must be a list of 1 to 10 URLs"

const faultsOfSender = (settings: {
  readonly from: string | null
  readonly messaging_service_sid: string | null
}): FieldErrors =>
  settings.from === null && settings.messaging_service_sid === null
    ? [{ path: "config.from", message: "is required: the sender, or config.messaging_service_sid" }]
    : faultsOfBlanks(settings, "from")

/** The settings of sender and recipient. */
interface Numbers {
  readonly to: string
  readonly from: string | null
  readonly messaging_service_sid: string | null
}

/** A form field. */
type Field = [name: string, value: string]

const auths = ["MESSAGING_AUTH_TOKEN"]

const exampleConfig = {
  to: "+15005550006",
  from: "+15005550001",
  body_template: "{{payload.message}}",
  auth_type: "MESSAGING_AUTH_TOKEN",
  auth: { account_sid: "AC00000000000000000000000000000000", auth_token: "token" }
}

const channelOf = (address: string): string | null => /^([a-z]+):/.exec(address)?.[1] ?? null

/**
 * The recipient: exactly one, whatever the payload contains. A payload cannot change the channel: it cannot turn a text message into a chat
 * message by a channel prefix, nor a chat message into a text message by omitting the prefix.
 */
const recipientOf = (text: string, from: string | null, chats: boolean): string => {
  const to = compact(text)
  if (!isRecipient(to, chats)) throw new Unrenderable("config.to does not make one recipient's number of this event")
  const channel = from === null ? null : channelOf(from)
  if (channel !== null && channelOf(to) !== channel) {
    throw new Unrenderable("config.to makes a number of this event that is not on the sender's channel")
  }
  return to
}

const senderOf = (text: string, chats: boolean): string => {
  const from = compact(text)
  if (number.test(from) || senderName.test(from) || (chats && ofChannel.test(from))) return from
  throw new Unrenderable("config.from does not make one sender of this event")
}

/** Sends the form of a message by POST. `chats`: whether chat channels are allowed; `rest` returns the other fields. */
const messages = (
  { from, messaging_service_sid, to }: Numbers,
  { headers, settings }: OpenAuth,
  origins: Origins,
  chats: boolean,
  rest: (fill: Fill) => ReadonlyArray<Field>
) => {
  const account = typeof settings["account_sid"] === "string" ? settings["account_sid"] : "-"
  const url = `${origins(api)}/2010-04-01/Accounts/${account}/Messages.json`
  const recipient = template(to)
  const by = from === null ? null : template(from)
  return apiSender({
    shownUrl: url,
    judge,
    call: (fill) => {
      const fields = rest(fill)
      const sentBy = by === null ? null : senderOf(filled(fill, by, "from"), chats)
      return {
        url,
        headers: flat(headers),
        contentType: form,
        body: new URLSearchParams([
          ["To", recipientOf(filled(fill, recipient, "to"), sentBy, chats)],
          ...(sentBy === null ? [] : [["From", sentBy] as Field]),
          ...(messaging_service_sid === null ? [] : [["MessagingServiceSid", messaging_service_sid] as Field]),
          ...fields
        ]).toString(),
        fetched: fields.flatMap(([name, value]) => (name === "MediaUrl" ? [value] : []))
      }
    }
  })
}

const bodyOf = (fill: Fill, one: DeliveryTemplate): Field => [
  "Body",
  shortened(filled(fill, one, "body_template"), longestBody)
]

/** Codes of calls that may succeed later: the sender's queue is full, or calls come too fast. */
const passing: ReadonlySet<unknown> = new Set([14_107, 20_429, 20_500, 20_503, 21_611, 30_001, 63_018])

const judge = (answer: Answer): Verdict => {
  const { code, error_code, sid, status } = answered(answer)
  // The resource exists for every account, so the missing part is the account.
  if (answer.status === 404) return rejected("HTTP 404", code)
  const verdict = proved(answer, judgeCall(answer, code), typeof sid === "string" && sid !== "")
  // A message was created, but Twilio may know already that it cannot be delivered.
  if (verdict === "successful") {
    return typeof error_code === "number" || status === "failed" || status === "undelivered"
      ? refused(error_code, !passing.has(error_code))
      : verdict
  }
  return passing.has(code) ? { ...verdict, final: false } : verdict
}

export const messagingSms = connector({
  type: "MESSAGING_SMS",
  name: "Twilio SMS",
  description: "Sends a text message (Twilio).",
  settings: bodied,
  pace: perNumber,
  check: faultsOfSender,
  auths,
  origins: [api],
  credentials: "mask",
  example: { name: "sms", type: "MESSAGING_SMS", config: exampleConfig },
  open: (settings, auth, origins) => {
    const body = template(settings.body_template)
    return messages(settings, auth, origins, false, (fill) => [bodyOf(fill, body)])
  }
})

export const messagingMms = connector({
  type: "MESSAGING_MMS",
  name: "Twilio MMS",
  description: "Sends a text message with media (Twilio), which the API fetches from their URLs.",
  settings: {
    ...bodied,
    media_urls: needed(
      Schema.Array(Media)
        .annotate({ message: manyMedia, description: "Public URLs or templates of them, like {{payload.media_url}}" })
        .check(Schema.isMinLength(1, { message: manyMedia }), Schema.isMaxLength(10, { message: manyMedia })),
      "1 to 10 public http or https URLs",
      manyMedia
    )
  },
  pace: perNumber,
  check: (settings) => [
    ...faultsOfSender(settings),
    ...(settings.media_urls.some((one) => !one.includes("{{") && urlFault(one, 2_048) !== null)
      ? [{ path: "config.media_urls", message: "must be absolute http or https URLs, or templates of them" }]
      : [])
  ],
  auths,
  origins: [api],
  credentials: "mask",
  example: {
    name: "mms",
    type: "MESSAGING_MMS",
    config: { ...exampleConfig, media_urls: ["{{payload.media_url}}"] }
  },
  open: (settings, auth, origins) => {
    const body = template(settings.body_template)
    const media = settings.media_urls.map(template)
    return messages(settings, auth, origins, false, (fill) => [
      bodyOf(fill, body),
      ...media.map((one) => ["MediaUrl", mediaUrl(fill, one)] as Field)
    ])
  }
})

const mediaUrl = (fill: Fill, one: DeliveryTemplate): string => {
  const url = filled(fill, one, "media_urls")
  if (urlFault(url, 2_048) !== null) throw new Unrenderable("config.media_urls does not make a URL of this event")
  return url
}

export const messagingChat = connector({
  type: "MESSAGING_CHAT",
  name: "Twilio WhatsApp",
  description: "Sends a chat message (Twilio, WhatsApp and kin).",
  settings: {
    ...sender,
    to: needed(
      Recipient(true).annotate({
        description: "One number in E.164, with its channel before it; the channel is the sender's where that has one",
        examples: ["whatsapp:+15005550006"]
      }),
      "the address of the recipient"
    ),
    body_template: setting(Body, null),
    content_sid: sid("HX", "An approved template, which is sent instead of a body; needs a messaging service"),
    content_variables: setting(
      TemplateText(16_384).annotate({ description: "JSON object: the template's variables" }),
      null
    )
  },
  pace: perNumber,
  check: (settings) => {
    const { body_template, content_sid, content_variables, messaging_service_sid } = settings
    return [
      ...faultsOfSender(settings),
      ...(body_template === null && content_sid === null
        ? [{ path: "config.body_template", message: "is required: the text of the message, or config.content_sid" }]
        : faultsOfBlanks(settings, "content_variables", ...(content_sid === null ? (["body_template"] as const) : []))),
      ...(content_sid !== null && messaging_service_sid === null
        ? [{ path: "config.messaging_service_sid", message: "is required with config.content_sid" }]
        : []),
      ...(content_variables !== null && content_sid === null
        ? [{ path: "config.content_variables", message: "has no effect without config.content_sid" }]
        : [])
    ]
  },
  auths,
  origins: [api],
  credentials: "mask",
  example: {
    name: "chat",
    type: "MESSAGING_CHAT",
    config: { ...exampleConfig, to: "whatsapp:+15005550006", from: "whatsapp:+15005550001" }
  },
  open: ({ body_template, content_sid, content_variables, ...settings }, auth, origins) => {
    const body = body_template === null ? null : template(body_template)
    const values = content_variables === null ? null : template(content_variables)
    return messages(settings, auth, origins, true, (fill) => [
      ...(body === null ? [] : [bodyOf(fill, body)]),
      ...(content_sid === null ? [] : [["ContentSid", content_sid] as Field]),
      ...(values === null
        ? []
        : [["ContentVariables", variablesOf(filledJson(fill, values, "content_variables"))] as Field])
    ])
  }
})

const variablesOf = (made: unknown): string => {
  if (typeof made !== "object" || made === null || Array.isArray(made)) {
    throw new Unrenderable("config.content_variables does not make a JSON object of this event")
  }
  const values = Object.entries(made).flatMap(([name, value]): ReadonlyArray<readonly [string, string]> => {
    const text = variableOf(value)
    return text === "" ? [] : [[name, text]]
  })
  return JSON.stringify(Object.fromEntries(values))
}

/**
 * The value of a variable in the API's form: one line without long runs of spaces. A missing or empty value is refused; the template
 * has a default for variables that are omitted.
 */
const variableOf = (value: unknown): string => {
  const text = typeof value === "string" ? value : value === null ? "" : JSON.stringify(value)
  const line = text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .replaceAll(/ {4,}/g, " ")
    .trim()
  return shortened(line, longestBody)
}
