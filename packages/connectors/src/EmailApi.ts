import { Schema } from "effect"
import { OneOf } from "@tidegate/model/AuthSettings"
import { answered, apiSender, flat, json, judgeCall, located, proved, untilReset, waiting } from "./Api.ts"
import { type Answer, connector, type Verdict } from "./Connector.ts"
import { bodies, envelope, faultsOfEnvelope, letter, mailPerStep, mailSettings } from "./Mail.ts"
import { template, TemplateText } from "./Rendering.ts"
import { needed, setting } from "./Settings.ts"

const api = "https://api.sendgrid.com"
const apis = [api, "https://api.eu.sendgrid.com"] as const

/** Whether the domain is written out, and not for a payload to say. */
const hasDomain = (from: string): boolean => /@[^@{}]+$/.test(from)
const noDomain = "must be an e-mail address whose domain is written out: placeholders stand before the @ alone"

/** E-mail by an API (SendGrid, mail/send). Its sender has to be one that the account may send as. */
export const emailApi = connector({
  type: "EMAIL_API_EMAIL",
  description: "Sends an e-mail by an API (SendGrid).",
  settings: {
    from: needed(
      TemplateText(320)
        .check(Schema.makeFilter((from: string) => !from.includes("{{") || hasDomain(from) || noDomain))
        .annotate({
          description: "A verified sender; placeholders stand before the @ alone",
          examples: ["orders@example.com"]
        }),
      "the address of a verified sender"
    ),
    from_name: setting(TemplateText(256).annotate({ description: "The sender's name" }), null),
    ...mailSettings,
    api_base: setting(OneOf(apis).annotate({ description: "The API of the account's region" }), api)
  },
  pace: {
    perSecond: 1,
    because: "trial accounts and new senders are held to little, and a burst of letters counts as abuse"
  },
  // What was stored before is judged as well: who may send as which domain is found out when it is written.
  check: ({ from, ...rest }) => [
    ...faultsOfEnvelope({ from, ...rest }),
    ...(hasDomain(from) || !from.includes("{{") ? [] : [{ path: "config.from", message: noDomain }])
  ],
  auths: ["EMAIL_API_KEY"],
  origins: apis,
  credentials: "mask",
  perStep: mailPerStep,
  example: {
    name: "mail-to-ops",
    type: "EMAIL_API_EMAIL",
    config: {
      from: "orders@example.com",
      to: "ops@example.com",
      text_template: "Order {{payload.id}} has arrived",
      auth_type: "EMAIL_API_KEY",
      auth: { api_key: "SG.0000.0000" }
    }
  },
  open: ({ api_base, from, from_name, ...mail }, { headers }, origins) => {
    const url = `${origins(api_base)}/v3/mail/send`
    const compiled = letter(mail)
    const sender = template(from)
    const name = from_name === null ? null : template(from_name)
    return apiSender({
      shownUrl: url,
      judge,
      call: (fill) => {
        const { bcc, cc, replyTo, subject, to } = envelope(fill, compiled)
        const { html, text } = bodies(fill, compiled)
        const called = name === null ? "" : undecoded(compiled.line(fill, name))
        const addresses = (list: ReadonlyArray<string>) => list.map((email) => ({ email }))
        return {
          url,
          headers: flat(headers),
          contentType: json,
          body: JSON.stringify({
            personalizations: [
              {
                to: addresses(to),
                ...(cc.length > 0 ? { cc: addresses(cc) } : {}),
                ...(bcc.length > 0 ? { bcc: addresses(bcc) } : {})
              }
            ],
            from: {
              email: compiled.address(fill, sender, "from"),
              ...(called === "" ? {} : { name: called })
            },
            ...(replyTo === null ? {} : { reply_to: { email: replyTo } }),
            subject: undecoded(subject),
            content: [
              ...(text === null ? [] : [{ type: "text/plain", value: text }]),
              ...(html === null ? [] : [{ type: "text/html", value: html }])
            ]
          })
        }
      }
    })
  }
})

/** The API writes it into a header, where an encoded word would be shown as what it stands for. */
const undecoded = (text: string): string => text.replaceAll("=?", "= ?")

const judge = (answer: Answer): Verdict => {
  // It takes a letter by a 202 and no words.
  const verdict = located(proved(answer, judgeCall(answer), answer.status === 202), placeIn(answered(answer)["errors"]))
  // It says by a moment of its own when it takes calls again, and not always how long that is.
  return answer.status === 429 && answer.headers["retry-after"] === undefined
    ? waiting(verdict, untilReset(answer, "x-ratelimit-reset"))
    : verdict
}

/** The member of a letter that it refuses, like `personalizations.0.to`. */
const placeIn = (errors: unknown): string | null => {
  const [first] = Array.isArray(errors) ? (errors as ReadonlyArray<unknown>) : []
  return typeof first === "object" && first !== null && "field" in first && typeof first.field === "string"
    ? first.field
    : null
}
