import { OneOf } from "@tidegate/model/AuthSettings"
import { answered, apiSender, flat, json, judgeCall, located, proved, untilReset, waiting } from "./Api.ts"
import { type Answer, connector, type Verdict } from "./Connector.ts"
import { bodies, envelope, faultsOfMail, letter, mailPerStep, mailSettings, senderSettings, undecoded } from "./Mail.ts"
import { template } from "./Rendering.ts"
import { setting } from "./Settings.ts"

const api = "https://api.sendgrid.com"
const apis = [api, "https://api.eu.sendgrid.com"] as const

/** Sends e-mail by an API (SendGrid, mail/send). The account must be allowed to send from the sender's address. */
export const emailApi = connector({
  type: "EMAIL_API_EMAIL",
  name: "SendGrid",
  description: "Sends an e-mail by an API (SendGrid).",
  settings: {
    ...senderSettings("a verified sender"),
    ...mailSettings,
    api_base: setting(OneOf(apis).annotate({ description: "The API of the account's region" }), api)
  },
  pace: {
    perSecond: 1,
    because: "trial accounts and new senders are held to little, and a burst of letters counts as abuse"
  },
  check: faultsOfMail,
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

const judge = (answer: Answer): Verdict => {
  // SendGrid accepts a message with 202 and an empty body.
  const verdict = located(proved(answer, judgeCall(answer), answer.status === 202), placeIn(answered(answer)["errors"]))
  // If `retry-after` is missing, the end of the wait is in a header of its own.
  return answer.status === 429 && answer.headers["retry-after"] === undefined
    ? waiting(verdict, untilReset(answer, "x-ratelimit-reset"))
    : verdict
}

/** The member of the message that the API refuses, such as `personalizations.0.to`. */
const placeIn = (errors: unknown): string | null => {
  const [first] = Array.isArray(errors) ? (errors as ReadonlyArray<unknown>) : []
  return typeof first === "object" && first !== null && "field" in first && typeof first.field === "string"
    ? first.field
    : null
}
