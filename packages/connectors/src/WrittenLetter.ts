import MailComposer from "nodemailer/lib/mail-composer"
import type MimeNode from "nodemailer/lib/mime-node"
import { type bodies, type envelope, isEncodedWord } from "./Mail.ts"

export interface Letter extends ReturnType<typeof envelope>, ReturnType<typeof bodies> {
  /** Null: the mail service writes the sender. */
  readonly from: { readonly name: string; readonly address: string } | null
  /** The same for every attempt: mail programs show a message that was sent twice only once. */
  readonly id: string
  /** What stands behind the @ of that id. */
  readonly domain: string
  readonly date: Date
}

/**
 * The message in the form of RFC 5322: every line ends with CRLF. The library composes it, and folds and encodes the headers. Its own output is a stream, which
 * is not used here. It gets texts only, and reads no files or URLs.
 */
export const writtenLetter = (
  { bcc, cc, date, domain, from, html, id, replyTo, subject, text, to }: Letter,
  { keepBcc }: { readonly keepBcc: boolean }
): string => {
  const composer = new MailComposer({
    ...(from === null ? {} : { from }),
    to: [...to],
    cc: [...cc],
    bcc: [...bcc],
    ...(replyTo === null ? {} : { replyTo }),
    subject: isEncodedWord(subject) ? encodedWords(subject) : subject,
    date,
    messageId: `<${id}@${domain}>`,
    baseBoundary: id,
    alternatives: [
      ...(text === null ? [] : [{ ...encoded, contentType: "text/plain; charset=utf-8", content: text }]),
      ...(html === null ? [] : [{ ...encoded, contentType: "text/html; charset=utf-8", content: html }])
    ],
    disableFileAccess: true,
    disableUrlAccess: true
  })
  const root = composer.compile()
  root.keepBcc = keepBcc
  const whole = partOf(root)
  return whole.endsWith("\r\n") ? whole : `${whole}\r\n`
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
