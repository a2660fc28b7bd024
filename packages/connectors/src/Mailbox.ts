import { apiSender, flat, json } from "./Api.ts"
import { connector } from "./Connector.ts"
import { judgeGoogle } from "./Google.ts"
import { bodies, envelope, faultsOfEnvelope, letter, mailPerStep, mailSettings } from "./Mail.ts"
import { writtenLetter } from "./WrittenLetter.ts"

const api = "https://gmail.googleapis.com"

/** Sends e-mail from a user's own mailbox (Gmail, messages.send), whose address is the sender. */
export const mailbox = connector({
  type: "MAILBOX_EMAIL",
  name: "Gmail",
  description: "Sends an e-mail from a mailbox (Gmail).",
  settings: mailSettings,
  pace: { perSecond: 1, because: "a mailbox sends about two letters a second, and some hundred a day" },
  check: faultsOfEnvelope,
  auths: ["OAUTH_REFRESH_TOKEN", "OAUTH2_AUTHORIZATION_CODE"],
  scope: "https://www.googleapis.com/auth/gmail.send",
  origins: [api],
  credentials: "mask",
  perStep: mailPerStep,
  example: {
    name: "mail-from-ops",
    type: "MAILBOX_EMAIL",
    config: {
      to: "ops@example.com",
      text_template: "Order {{payload.id}} has arrived",
      auth_type: "OAUTH_REFRESH_TOKEN",
      auth: {
        client_id: "0000.apps.googleusercontent.com",
        client_secret: "secret-of-the-client",
        refresh_token: "1//token-of-the-account",
        token_url: "https://oauth2.googleapis.com/token"
      }
    }
  },
  open: (settings, { headers }, origins) => {
    const url = `${origins(api)}/gmail/v1/users/me/messages/send`
    const compiled = letter(settings)
    return apiSender({
      shownUrl: url,
      judge: (answer) => judgeGoogle(answer, ({ id }) => typeof id === "string"),
      call: (fill, { createdAt, webhookId }) => ({
        url,
        headers: flat(headers),
        contentType: json,
        body: JSON.stringify({
          raw: Buffer.from(
            writtenLetter(
              {
                ...envelope(fill, compiled),
                ...bodies(fill, compiled),
                from: null,
                id: webhookId,
                domain: "tidegate.invalid",
                date: new Date(createdAt)
              },
              // The API takes the bcc recipients from the message, and removes them from it.
              { keepBcc: true }
            )
          ).toString("base64url")
        })
      })
    })
  }
})
