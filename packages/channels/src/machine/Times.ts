import { alphabet } from "@tidegate/model/Ids"

/* When things are due; pure. All times are Unix ms. */

export const minuteMs = 60_000
export const hourMs = 3_600_000
export const dayMs = 86_400_000

/** A handshake that has not arrived after this time is a failure. */
export const handshakeMs = minuteMs
/** A poll without a notification is this much after the last one: notifications are not fully reliable. */
export const safetyMs = 6 * hourMs
/** How long the subscriptions of a deleted source are tried to be stopped. */
export const stopTriedMs = 7 * dayMs
/** How long an ended subscription is remembered. */
export const forgottenAfterMs = 30 * dayMs
/** No wait that a provider asks for is longer. */
const longestRetryAfterMs = dayMs

const steps = [5_000, 30_000, 2 * minuteMs, 10 * minuteMs]

/** The wait after this many failures in a row. A failure that the same request would have again is not tried again soon. */
export const backoff = (failures: number, permanent: boolean, retryAfterMs: number | null): number => {
  const own = permanent ? hourMs : (steps[failures - 1] ?? hourMs)
  return Math.max(own, Math.min(retryAfterMs ?? 0, longestRetryAfterMs))
}

/** The next time on the grid of a schedule. The grid begins with the source, so an outage neither shifts it nor causes a burst. */
export const nextOnGrid = (startedAt: number, minutes: number, now: number): number => {
  const step = minutes * minuteMs
  return startedAt + (Math.floor((now - startedAt) / step) + 1) * step
}

/** The facts that determine when a subscription has to be renewed. */
export interface Life {
  readonly id: string
  readonly created_at: number
  readonly verified_at: number | null
  readonly last_renewed_at: number | null
  /** Null: it never expires, or it is not known. */
  readonly expires_at: number | null
  /** When the provider has asked for a renewal; null: it has not. */
  readonly renew_at: number | null
}

/** How long the subscription lives from its last renewal on; null: it never expires. */
export const lifeOf = ({ created_at, expires_at, last_renewed_at, verified_at }: Life): number | null =>
  expires_at === null ? null : Math.max(0, expires_at - (last_renewed_at ?? verified_at ?? created_at))

/** A subscription is renewed earlier by up to this share of its life, so that not all are renewed at the same time. */
const jitter = 0.05

/** From 0 to 1; the random characters at the end of the id decide. */
const shareOf = (id: string): number => {
  let share = 0
  for (let at = id.length - 4; at < id.length; at++) share = share * 32 + Math.max(0, alphabet.indexOf(id.charAt(at)))
  return share / 32 ** 4
}

/**
 * When to renew: a fifth of its life before the end, and at least 15 minutes before it. A short life is not renewed before its
 * half. A renewal that the provider asks for is not later. Null: never.
 */
export const renewalAt = (subscription: Life): number | null => {
  const life = lifeOf(subscription)
  const { expires_at, renew_at } = subscription
  if (life === null || expires_at === null) return renew_at
  const before = Math.max(life / 5, 15 * minuteMs) + shareOf(subscription.id) * jitter * life
  return Math.min(renew_at ?? Infinity, Math.round(expires_at - Math.min(before, life / 2)))
}
