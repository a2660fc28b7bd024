import MailComposer from "nodemailer/lib/mail-composer"
import type MimeNode from "nodemailer/lib/mime-node"
import { apiSender, flat, json } from "./Api.ts"
import { connector } from "./Connector.ts"
import { judgeGoogle } from "./Google.ts"
import { bodies, envelope, faultsOfEnvelope, isEncodedWord, letter, mailPerStep, mailSettings } from "./Mail.ts"

const api = "https://gmail.googleapis.com"

/** Sends e-mail from a user's own mailbox (Gmail, messages.send), whose address is the sender. */
export const mailbox = connector({
  type: "MAILBOX_EMAIL",
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
            written({
              ...envelope(fill, compiled),
              ...bodies(fill, compiled),
              id: webhookId,
              date: new Date(createdAt)
            })
          ).toString("base64url")
        })
      })
    })
  }
})

interface Mail extends ReturnType<typeof envelope>, ReturnType<typeof bodies> {
  /** The same for every attempt: mail programs show a message that was sent twice only once. */
  readonly id: string
  readonly date: Date
}

/**
 * The message in the form of RFC 5322. The library composes it, and folds and encodes the headers. Its own output is a stream, which
 * is not used here. It gets texts only, and reads no files or URLs.
 */
const written = ({ bcc, cc, date, html, id, replyTo, subject, text, to }: Mail): string => {
  const composer = new MailComposer({
    to: [...to],
    cc: [...cc],
    bcc: [...bcc],
    ...(replyTo === null ? {} : { replyTo }),
    subject: isEncodedWord(subject) ? encodedWords(subject) : subject,
    date,
    messageId: `<${id}@tidegate.invalid>`,
    baseBoundary: id,
    alternatives: [
      ...(text === null ? [] : [{ ...encoded, contentType: "text/plain; charset=utf-8", content: text }]),
      ...(html === null ? [] : [{ ...encoded, contentType: "text/html; charset=utf-8", content: html }])
    ],
    disableFileAccess: true,
    disableUrlAccess: true
  })
  const root = composer.compile()
  // The API takes the bcc recipients from the message, and removes them from it.
  root.keepBcc = true
  return partOf(root)
}

/** A text that looks like an encoded word would be decoded: the whole text is encoded, like non-ASCII text. */
const encodedWords = (text: string): string => {
  const words: Array<string> = []
  let word = ""
  for (const character of text) {
    if (Buffer.byteLength(word + character) > 42) {
      words.push(word)
      word = ""
    }
    word += character
  }
  return [...words, word].map((one) => `=?UTF-8?B?${Buffer.from(one).toString("base64")}?=`).join(" ")
}

/** With base64 no line of a text can look like the end of a part, or be too long. */
const encoded = { contentTransferEncoding: "base64" } as const

const partOf = (node: MimeNode): string => {
  const head = `${node.buildHeaders()}\r\n\r\n`
  if (!node.boundary) return head + lines(Buffer.from(node.content as string).toString("base64"))
  const parts = node.childNodes.map((child) => `--${node.boundary}\r\n${partOf(child)}\r\n`)
  return `${head}${parts.join("")}--${node.boundary}--\r\n`
}

const lines = (base64: string): string => base64.replaceAll(/.{76}(?=.)/g, "$&\r\n")
