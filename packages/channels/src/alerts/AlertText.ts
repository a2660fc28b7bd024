import type { MessageKind } from "./AlertDecision.ts"

/** The data of an alert in a message. It contains no payload data. */
export interface ToldAlert {
  readonly kind: MessageKind
  readonly code: string
  readonly source_name: string
  readonly message: string
  readonly occurrences: number
  /** Unix ms. */
  readonly first_seen_at: number
  readonly resolved_at: number | null
}

const names: Readonly<Record<string, string>> = {
  channel_provision_failed: "Subscribing failed",
  channel_renewal_failed: "Renewal failed",
  channel_stop_failed: "Unsubscribing failed",
  channel_notification_silence: "Notifications are missing"
}

const prefixOf: Readonly<Record<MessageKind, string>> = {
  opened: "",
  reminder: "Still active: ",
  resolved: "Resolved: "
}

/** The title of an alert, for example `Resolved: Renewal failed: Team calendar`. */
const titleOf = ({ code, kind, source_name }: ToldAlert): string =>
  `${prefixOf[kind]}${names[code] ?? code}: ${oneLine(source_name, 120)}`

const oneLine = (text: string, maximum: number): string => {
  const line = text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim()
  return line.length <= maximum ? line : `${line.slice(0, maximum - 1).replace(/[\ud800-\udbff]$/, "")}…`
}

const detailOf = ({ first_seen_at, kind, message, occurrences, resolved_at }: ToldAlert): string => {
  const since = `since ${timeOf(first_seen_at)}`
  if (kind === "resolved") return `${since}, until ${timeOf(resolved_at ?? first_seen_at)}`
  return `${oneLine(message, 400)} (${since}${occurrences > 1 ? `, ${occurrences} times` : ""})`
}

const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`

export interface MessageText {
  readonly subject: string
  readonly text: string
}

/** The text of one message about some alerts, at most `maximum` characters: alerts that do not fit are only counted. */
export const messageText = (alerts: ReadonlyArray<ToldAlert>, maximum: number): MessageText => {
  const [first] = alerts
  const subject = alerts.length === 1 ? titleOf(first!) : `${alerts.length} alerts of channels`
  const parts = alerts.map((alert) => `${titleOf(alert)}\n${detailOf(alert)}`)
  let text = ""
  for (const [at, part] of parts.entries()) {
    const left = parts.length - at
    const more = left > 1 ? `\n\nand ${left - 1} more` : ""
    const next = text === "" ? part : `${text}\n\n${part}`
    if (next.length + more.length > maximum) {
      return { subject, text: text === "" ? oneLine(part, maximum) : `${text}\n\nand ${left} more` }
    }
    text = next
  }
  return { subject, text }
}

const chatLimit = 3_000
const discordLimit = 2_000

/** Slack reads these as mark-up: a name like `<!channel>` would call everybody. */
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const isDiscord = ({ hostname, pathname }: URL): boolean =>
  /(?:^|\.)discord(?:app)?\.com$/.test(hostname) && !/\/slack\/?$/.test(pathname)

/** The body that a chat's webhook gets: `text`, which most understand, and `content` for Discord. */
export const chatBody = (url: URL, alerts: ReadonlyArray<ToldAlert>): string => {
  if (isDiscord(url)) {
    return JSON.stringify({ content: messageText(alerts, discordLimit).text, allowed_mentions: { parse: [] } })
  }
  // Escapes make a text longer: it is shortened until it fits.
  for (let limit = chatLimit; ; limit = Math.floor(limit / 2)) {
    const text = escaped(messageText(alerts, limit).text)
    if (text.length <= chatLimit) return JSON.stringify({ text })
  }
}

/** `ada@example.com` as `a***@example.com`. */
export const maskedAddress = (address: string): string => {
  const at = address.lastIndexOf("@")
  return at < 1 ? "***" : `${address.slice(0, 1)}***${address.slice(at)}`
}
