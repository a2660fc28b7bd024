import { Schema } from "effect"
import { urlFault } from "@tidegate/model/UrlFault"
import { answered, apiSender, flat, form, judgeCall, refused, rejected } from "./Api.ts"
import { type Answer, connector, type OpenAuth, type Verdict } from "./Connector.ts"
import type { Origins } from "./Origins.ts"
import {
  type DeliveryTemplate,
  type Fill,
  filled,
  filledJson,
  shortened,
  template,
  TemplateText,
  Unrenderable
} from "./Rendering.ts"
import { type FieldErrors, needed, pacing, pacingOf, setting, text } from "./Settings.ts"

/** Text messages by an API (Twilio, Messages). */

const api = "https://api.twilio.com"

/** More is refused by the API. */
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

const sender = {
  to: needed(
    TemplateText(256).annotate({ description: "A number, usually E.164", examples: ["+15005550006"] }),
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

const Media = TemplateText(2_048)
const manyMedia = "must be a list of 1 to 10 URLs"

const faultsOfSender = ({
  from,
  messaging_service_sid
}: {
  readonly from: string | null
  readonly messaging_service_sid: string | null
}): FieldErrors =>
  from === null && messaging_service_sid === null
    ? [{ path: "config.from", message: "is required: the sender, or config.messaging_service_sid" }]
    : []

/** What a call says of who sends to whom. */
interface Numbers {
  readonly to: string
  readonly from: string | null
  readonly messaging_service_sid: string | null
}

/** Of a form. */
type Field = [name: string, value: string]

const auths = ["MESSAGING_AUTH_TOKEN"]

const exampleConfig = {
  to: "+15005550006",
  from: "+15005550001",
  body_template: "{{payload.message}}",
  auth_type: "MESSAGING_AUTH_TOKEN",
  auth: { account_sid: "AC00000000000000000000000000000000", auth_token: "token" }
}

/** POSTs the form of a message. `rest` are its other fields. */
const messages = (
  { from, messaging_service_sid, to }: Numbers,
  { headers, settings }: OpenAuth,
  origins: Origins,
  rest: (fill: Fill) => ReadonlyArray<Field>
) => {
  const account = typeof settings["account_sid"] === "string" ? settings["account_sid"] : "-"
  const url = `${origins(api)}/2010-04-01/Accounts/${account}/Messages.json`
  const recipient = template(to)
  const number = from === null ? null : template(from)
  return apiSender({
    shownUrl: url,
    judge,
    call: (fill) => {
      const fields = rest(fill)
      return {
        url,
        headers: flat(headers),
        contentType: form,
        body: new URLSearchParams([
          ["To", filled(fill, recipient, "to")],
          ...(number === null ? [] : [["From", filled(fill, number, "from")] as Field]),
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

/** What it says of a call that may succeed later: its queue of this sender is full, or is sent too fast. */
const passing: ReadonlySet<unknown> = new Set([14_107, 20_429, 20_500, 20_503, 21_611, 30_001, 63_018])

const judge = (answer: Answer): Verdict => {
  const { code, error_code, status } = answered(answer)
  // The resource is there for each account: what is not found is the account.
  if (answer.status === 404) return rejected("HTTP 404", code)
  const verdict = judgeCall(answer, code)
  // It has made a message, and may know already that it will not arrive.
  if (verdict === "successful") {
    return typeof error_code === "number" || status === "failed" || status === "undelivered"
      ? refused(error_code, !passing.has(error_code))
      : verdict
  }
  return passing.has(code) ? { ...verdict, final: false } : verdict
}

export const messagingSms = connector({
  type: "MESSAGING_SMS",
  description: "Sends a text message (Twilio).",
  settings: { ...bodied, ...pacing },
  check: faultsOfSender,
  auths,
  origins: [api],
  credentials: "mask",
  example: { name: "sms", type: "MESSAGING_SMS", config: exampleConfig },
  open: (settings, auth, origins) => {
    const body = template(settings.body_template)
    return messages(settings, auth, origins, (fill) => [bodyOf(fill, body)])
  }
})

export const messagingMms = connector({
  type: "MESSAGING_MMS",
  description: "Sends a text message with media (Twilio), which the API fetches from their URLs.",
  settings: {
    ...bodied,
    media_urls: needed(
      Schema.Array(Media)
        .annotate({ message: manyMedia, description: "Public URLs or templates of them, like {{payload.media_url}}" })
        .check(Schema.isMinLength(1, { message: manyMedia }), Schema.isMaxLength(10, { message: manyMedia })),
      "1 to 10 public http or https URLs",
      manyMedia
    ),
    ...pacing
  },
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
    return messages(settings, auth, origins, (fill) => [
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
  description: "Sends a chat message (Twilio, WhatsApp and kin).",
  settings: {
    ...sender,
    to: needed(
      TemplateText(256).annotate({ description: "Usually prefixed E.164", examples: ["whatsapp:+15005550006"] }),
      "the address of the recipient"
    ),
    body_template: setting(Body, null),
    content_sid: sid("HX", "An approved template, which is sent instead of a body; needs a messaging service"),
    content_variables: setting(
      TemplateText(16_384).annotate({ description: "JSON object: the template's variables" }),
      null
    ),
    ...pacingOf(1)
  },
  check: (settings) => {
    const { body_template, content_sid, content_variables, messaging_service_sid } = settings
    return [
      ...faultsOfSender(settings),
      ...(body_template === null && content_sid === null
        ? [{ path: "config.body_template", message: "is required: the text of the message, or config.content_sid" }]
        : []),
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
    return messages(settings, auth, origins, (fill) => [
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
  return JSON.stringify(made)
}
