import { dayMs } from "../machine/Times.ts"

/*
 * Which messages an alert gets, and when the next one is decided. For each alert and transport: `opened` at once, `reminder` after each
 * cooldown while it is active, with a growing gap, and `resolved` once if a message about it was sent.
 *
 * A cooldown is about the alert's source and code: an alert that is resolved and opens again and again does not send a message each
 * time. Only `resolved` does not wait for it, because otherwise nobody would learn that the alert is over.
 */

export const transports = ["email", "chat"] as const
export type Transport = (typeof transports)[number]
export type MessageKind = "opened" | "reminder" | "resolved"
export type DeliveryStatus = "queued" | "sent" | "failed" | "suppressed"

/** A message about an alert that was decided before. */
export interface Earlier {
  readonly transport: Transport
  readonly kind: MessageKind
  readonly status: DeliveryStatus
  /** Whether it is about this alert, or about an earlier one of the same source and code. */
  readonly isOwn: boolean
  /** When it was decided (Unix ms). */
  readonly at: number
}

/** The settings of the team, and those of the operator. */
export interface Delivering {
  readonly email: { readonly isEnabled: boolean; readonly isConfigured: boolean }
  readonly chat: { readonly isEnabled: boolean; readonly isConfigured: boolean }
  readonly cooldownMs: number
}

export interface Decided {
  readonly transport: Transport
  readonly kind: MessageKind
  readonly outcome:
    | { readonly status: "queued" }
    | { readonly status: "suppressed"; readonly reason: "cooldown" | "disabled" | "not_configured" }
    | { readonly status: "failed"; readonly code: "SMTP_NOT_CONFIGURED" }
}

export interface Decision {
  readonly messages: ReadonlyArray<Decided>
  /** When the next message is decided (Unix ms); null: there is none. */
  readonly notifyAt: number | null
}

/** The time between two messages about an alert (ms): the cooldown, doubled with each message up to a day. */
export const gapMs = (cooldownMs: number, messages: number): number =>
  Math.max(cooldownMs, Math.min(cooldownMs * 2 ** Math.min(messages - 1, 30), dayMs))

/** Whether a message was sent, or will be sent. */
const isOut = ({ status }: Earlier): boolean => status === "sent" || status === "queued"

const outcomeOf = (transport: Transport, delivering: Delivering): Decided["outcome"] => {
  const { isConfigured, isEnabled } = delivering[transport]
  if (!isEnabled) return { status: "suppressed", reason: "disabled" }
  if (isConfigured) return { status: "queued" }
  // A team can set up its chat, but only the operator can set up mail.
  return transport === "chat"
    ? { status: "suppressed", reason: "not_configured" }
    : { status: "failed", code: "SMTP_NOT_CONFIGURED" }
}

/** `earlier`: of the alert, and the last ones of earlier alerts of the same source and code; in any order. */
export const decideAlert = (
  status: "active" | "resolved",
  earlier: ReadonlyArray<Earlier>,
  delivering: Delivering,
  now: number
): Decision => {
  const decisions = transports.map((transport) => {
    const past = earlier.filter((one) => one.transport === transport).toSorted((a, b) => b.at - a.at)
    return status === "resolved" ? resolved(transport, past, delivering) : active(transport, past, delivering, now)
  })
  const times = decisions.flatMap(({ notifyAt }) => (notifyAt === null ? [] : [notifyAt]))
  return {
    messages: decisions.flatMap(({ message }) => (message === null ? [] : [message])),
    notifyAt: times.length === 0 ? null : Math.min(...times)
  }
}

interface Single {
  readonly message: Decided | null
  readonly notifyAt: number | null
}

const resolved = (transport: Transport, past: ReadonlyArray<Earlier>, delivering: Delivering): Single => {
  const own = past.filter(({ isOwn }) => isOwn)
  const isDue = own.some(isOut) && own.every(({ kind }) => kind !== "resolved")
  return {
    message: isDue ? { transport, kind: "resolved", outcome: outcomeOf(transport, delivering) } : null,
    notifyAt: null
  }
}

const active = (transport: Transport, past: ReadonlyArray<Earlier>, delivering: Delivering, now: number): Single => {
  const { cooldownMs } = delivering
  const told = past.filter(({ kind }) => kind !== "resolved")
  const own = told.filter(({ isOwn }) => isOwn)
  // If the message about the opening was suppressed, nobody knows of the alert.
  const kind = own.some(({ status }) => status !== "suppressed") ? "reminder" : "opened"
  const lastOut = told.find(isOut)
  const cooledAt = lastOut === undefined ? -Infinity : lastOut.at + cooldownMs

  const counted = own.filter((one) => !isByCooldown(one, told, cooldownMs))
  const [last] = counted
  const dueAt = last === undefined ? -Infinity : last.at + gapMs(cooldownMs, counted.length)
  if (now < dueAt) return { message: null, notifyAt: dueAt }
  if (now < cooledAt) {
    // It waits for the end of the cooldown, and is recorded once.
    const isRecorded = own.length > 0
    const outcome = { status: "suppressed", reason: "cooldown" } as const
    return { message: isRecorded ? null : { transport, kind, outcome }, notifyAt: cooledAt }
  }
  return {
    message: { transport, kind, outcome: outcomeOf(transport, delivering) },
    notifyAt: now + gapMs(cooldownMs, counted.length + 1)
  }
}

/** Whether a message was suppressed because of an earlier one: it delays no later message. */
const isByCooldown = (one: Earlier, told: ReadonlyArray<Earlier>, cooldownMs: number): boolean =>
  one.status === "suppressed" &&
  told.some((other) => isOut(other) && other.at <= one.at && one.at < other.at + cooldownMs)
