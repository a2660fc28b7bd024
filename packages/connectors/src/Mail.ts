import { Schema } from "effect"
import { xmlEscape } from "@tidegate/interpolation/Escape"
import { payloadPerStep } from "./Connector.ts"
import { shortened } from "./Cutting.ts"
import { type DeliveryTemplate, type Fill, filled, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { type FieldErrors, needed, setting, type SettingsOf } from "./Settings.ts"

/** The common part of the types that send e-mail: recipients and content. */

const maxRecipients = 10
/** Characters of a subject or a name: one line of a header. */
const longestLine = 255

const Address = TemplateText(320)
const oneOrMore = "must be an address or a list of addresses, or templates of them"
const Recipients = Schema.Union([
  Address,
  Schema.Array(Address).check(
    Schema.isMinLength(1, { message: "must have at least one address" }),
    Schema.isMaxLength(maxRecipients, { message: `must have at most ${maxRecipients} addresses` })
  )
]).annotate({
  message: oneOrMore,
  description: `Addresses or templates, each of one address; at most ${maxRecipients} in to, cc and bcc together`
})

export const mailSettings = {
  to: needed(Recipients, "the recipients", oneOrMore),
  cc: setting(Recipients, null, oneOrMore),
  bcc: setting(Recipients, null, oneOrMore),
  reply_to: setting(Address.annotate({ description: "Where answers go" }), null),
  subject: setting(TemplateText(1_024), "Event {{event_id}}"),
  text_template: setting(
    TemplateText(65_536).annotate({ description: "The text; without it and html_template, the payload" }),
    null
  ),
  html_template: setting(
    TemplateText(65_536).annotate({ description: "The same as HTML; what placeholders stand for is escaped" }),
    null
  )
}

/** Whether the domain is literal text, so that a payload cannot choose it. */
const hasDomain = (from: string): boolean => /@[^@{}]+$/.test(from)
const noDomain = "must be an e-mail address whose domain is written out: placeholders stand before the @ alone"

/** The sender. `who`: what the address has to be. */
export const senderSettings = (who: string) => ({
  from: needed(
    TemplateText(320)
      .check(Schema.makeFilter((from: string) => !from.includes("{{") || hasDomain(from) || noDomain))
      .annotate({
        description: `${who[0]!.toUpperCase()}${who.slice(1)}; placeholders stand before the @ alone`,
        examples: ["orders@example.com"]
      }),
    `the address of ${who}`
  ),
  from_name: setting(TemplateText(256).annotate({ description: "The sender's name" }), null)
})

export const mailPerStep = payloadPerStep("The text where there is neither text_template nor html_template")

type MailSettings = SettingsOf<typeof mailSettings>

const listOf = (recipients: string | ReadonlyArray<string> | null): ReadonlyArray<string> =>
  recipients === null ? [] : typeof recipients === "string" ? [recipients] : recipients

/** Bytes: 64 before the at sign, and 255 behind it. */
const longestAddress = 320

const local = /^[^\s,;:<>()[\]\\"@\p{Cc}\p{Cf}]+$/u
/**
 * A domain name, or a single label. Other characters than letters, digits and dashes are refused, because some programs convert look-alikes:
 * `\uff20` to an at sign.
 */
const domain = /^[\p{L}\p{N}\p{M}_-]+(?:\.[\p{L}\p{N}\p{M}_-]+)*$/u

/**
 * Whether a text is exactly one address. It must not contain a second address, also not after full-width characters are converted, and no
 * encoded word (`=?utf-8?q?…?=`, RFC 2047), which a mail program may decode into other addresses.
 */
const isAddress = (text: string): boolean => {
  const at = text.lastIndexOf("@")
  const before = text.slice(0, Math.max(0, at))
  return (
    Buffer.byteLength(text) <= longestAddress &&
    local.test(before) &&
    local.test(before.normalize("NFKC")) &&
    domain.test(text.slice(at + 1)) &&
    !isEncodedWord(text.normalize("NFKC"))
  )
}

/** Whether a mail program may treat a part of the text as an encoded word. */
export const isEncodedWord = (text: string): boolean => text.includes("=?")

/** A text that is written into a header as it is, where an encoded word would be decoded. */
export const undecoded = (text: string): string => text.replaceAll("=?", "= ?")

/** Errors of the recipients together, and of addresses without placeholders. */
export const faultsOfEnvelope = ({
  bcc,
  cc,
  to,
  ...rest
}: Pick<MailSettings, "to" | "cc" | "bcc" | "reply_to"> & { readonly from?: string }): FieldErrors => {
  const lists = {
    from: listOf(rest.from ?? null),
    to: listOf(to),
    cc: listOf(cc),
    bcc: listOf(bcc),
    reply_to: listOf(rest.reply_to)
  }
  const faults = Object.entries(lists).flatMap(([name, list]) =>
    list.some((one) => !one.includes("{{") && !isAddress(one))
      ? [{ path: `config.${name}`, message: "must be an e-mail address, or a list of them: one address in each text" }]
      : []
  )
  return lists.to.length + lists.cc.length + lists.bcc.length > maxRecipients
    ? [...faults, { path: "config.to", message: `must be at most ${maxRecipients} recipients with cc and bcc` }]
    : faults
}

/** The same with the sender. Applies to stored settings, too: the permission to send from a domain is checked when the setting is written. */
export const faultsOfMail = (
  settings: Pick<MailSettings, "to" | "cc" | "bcc" | "reply_to"> & { readonly from: string }
): FieldErrors => [
  ...faultsOfEnvelope(settings),
  ...(hasDomain(settings.from) || !settings.from.includes("{{") ? [] : [{ path: "config.from", message: noDomain }])
]

/** The templates of a message. */
export const letter = ({ bcc, cc, html_template, reply_to, subject, text_template, to }: MailSettings) => {
  const compile = (text: string | null) => (text === null ? null : template(text))
  return {
    to: listOf(to).map(template),
    cc: listOf(cc).map(template),
    bcc: listOf(bcc).map(template),
    replyTo: compile(reply_to),
    subject: template(subject),
    text: compile(text_template) ?? (html_template === null ? template("{{payload}}") : null),
    html: compile(html_template),
    address,
    line
  }
}

type Letter = ReturnType<typeof letter>

const address = (fill: Fill, one: DeliveryTemplate, setting: string): string => {
  const text = filled(fill, one, setting)
  // Fails closed, because a payload must not add recipients.
  if (!isAddress(text)) throw new Unrenderable(`config.${setting} does not make one e-mail address of this event`)
  return text
}

/** One line, whatever the payload contains. */
const line = (fill: Fill, one: DeliveryTemplate): string =>
  shortened(
    fill(one)
      .toWellFormed()
      .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
      .trim(),
    longestLine
  )

export const envelope = (fill: Fill, { bcc, cc, replyTo, subject, to }: Letter) => {
  // Mail APIs refuse a message that names a recipient twice.
  const named = new Set<string>()
  const once = (list: ReadonlyArray<DeliveryTemplate>, setting: string): ReadonlyArray<string> =>
    list.map((one) => address(fill, one, setting)).filter((one) => named.size < named.add(one.toLowerCase()).size)
  return {
    to: once(to, "to"),
    cc: once(cc, "cc"),
    bcc: once(bcc, "bcc"),
    replyTo: replyTo === null ? null : address(fill, replyTo, "reply_to"),
    subject: line(fill, subject) || "(no subject)"
  }
}

export const bodies = (fill: Fill, { html, text }: Letter) => ({
  // Mail APIs refuse an empty part.
  text: text === null ? null : fill(text).toWellFormed() || " ",
  html: html === null ? null : fill(html, xmlEscape).toWellFormed() || " "
})
