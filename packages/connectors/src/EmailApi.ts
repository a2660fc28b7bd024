import { OneOf } from "@tidegate/signatures/AuthSettings"
import { apiSender, flat, json, judgeCall } from "./Api.ts"
import { connector } from "./Connector.ts"
import { bodies, envelope, faultsOfEnvelope, letter, mailSettings } from "./Mail.ts"
import { template, TemplateText } from "./Rendering.ts"
import { needed, pacingOf, setting } from "./Settings.ts"

const api = "https://api.sendgrid.com"

/** E-mail by an API (SendGrid, mail/send). Its sender has to be one that the account may send as. */
export const emailApi = connector({
  type: "EMAIL_API_EMAIL",
  description: "Sends an e-mail by an API (SendGrid).",
  settings: {
    from: needed(
      TemplateText(320).annotate({ description: "A verified sender", examples: ["orders@example.com"] }),
      "the address of a verified sender"
    ),
    from_name: setting(TemplateText(256).annotate({ description: "The sender's name" }), null),
    ...mailSettings,
    api_base: setting(
      OneOf([api, "https://api.eu.sendgrid.com"]).annotate({ description: "The API of the account's region" }),
      api
    ),
    ...pacingOf(1)
  },
  check: faultsOfEnvelope,
  auths: ["EMAIL_API_KEY"],
  credentials: "mask",
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
      judge: judgeCall,
      call: (fill) => {
        const { bcc, cc, replyTo, subject, to } = envelope(fill, compiled)
        const { html, text } = bodies(fill, compiled)
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
              ...(name ? { name: compiled.line(fill, name) } : {})
            },
            ...(replyTo === null ? {} : { reply_to: { email: replyTo } }),
            subject,
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
