import type { AccountState, ProviderSettings } from "@tidegate/model/ProviderSource"
import { definitionOf } from "../SourceProviders.ts"
import type { AlertCode } from "./Facts.ts"
import type { State } from "./State.ts"
import { type Life, lifeOf, minuteMs, renewalAt } from "./Times.ts"

export type ChannelStatus = "connecting" | "active" | "expiring" | "error" | "fallback"

/** A subscription as the status sees it. */
export interface SubscriptionLife extends Life {
  readonly target: string
  readonly state: string
}

interface Shared {
  readonly disabled: boolean
  /** Null: there is none. */
  readonly account: { readonly state: AccountState } | null
  readonly state: Pick<State, "fallback" | "expired">
  readonly subscriptions: ReadonlyArray<SubscriptionLife>
  /** The codes of active alerts. */
  readonly alerts: ReadonlyArray<AlertCode>
  /** Unix ms. */
  readonly now: number
}

/** What the status of a channel is derived from. */
export interface StatusFacts extends Shared {
  readonly needsAccount: boolean
  /** The targets of the inputs. */
  readonly expected: ReadonlyArray<string>
}

export interface Status {
  readonly status: ChannelStatus
  readonly status_reason: string | null
  readonly expected_targets: number
  /** Expected targets with an active subscription. */
  readonly active_subscriptions: number
}

/** An account that the provider refuses for another reason is one that has to be connected again, too. */
const accountReasons: { readonly [state in Exclude<AccountState, "active">]: string } = {
  expired: "account_expired",
  error: "account_expired",
  revoked: "account_revoked"
}

/** For each expected target, the active subscription that ends last. During a renewal there are two. */
const currentOf = (expected: ReadonlyArray<string>, subscriptions: ReadonlyArray<SubscriptionLife>) =>
  expected.flatMap((target) => {
    const active = subscriptions.filter((one) => one.target === target && one.state === "active")
    return active.toSorted((left, right) => (right.expires_at ?? Infinity) - (left.expires_at ?? Infinity)).slice(0, 1)
  })

/** The time (ms) for a renewal that the provider asks for. */
const askedMs = 15 * minuteMs

/** It should have been renewed: a tenth of its life ago, or it has only a tenth left. The provider may have asked for it earlier. */
const isOverdue = (subscription: SubscriptionLife, now: number): boolean => {
  const life = lifeOf(subscription)
  const renewal = renewalAt(subscription)
  if (subscription.renew_at !== null && now > subscription.renew_at + askedMs) return true
  if (life === null || renewal === null || subscription.expires_at === null) return false
  return now > renewal + life / 10 || subscription.expires_at - now <= life / 10
}

/** The status of a channel. The first rule that matches decides. */
export const channelStatus = (facts: StatusFacts): Status => {
  const { account, alerts, disabled, expected, needsAccount, now, state } = facts
  const current = currentOf(expected, facts.subscriptions)
  // Subscriptions that a disabled source still has are about to be stopped.
  const active = disabled ? 0 : current.length
  const is = (status: ChannelStatus, status_reason: string | null): Status => ({
    status,
    status_reason,
    expected_targets: expected.length,
    active_subscriptions: active
  })

  if (state.fallback.active) return is("fallback", state.fallback.reason)
  if (needsAccount && account === null) return is("error", "account_missing")
  if (needsAccount && account !== null && account.state !== "active") return is("error", accountReasons[account.state])
  if (alerts.includes("channel_provision_failed")) return is("error", "provision_failed")
  if (active < expected.length && state.expired) return is("error", "subscription_expired")
  if (disabled) return is("connecting", "source_disabled")
  if (active < expected.length) return is("connecting", "provisioning")
  if (alerts.includes("channel_renewal_failed")) return is("expiring", "renewal_failed")
  if (current.some((one) => isOverdue(one, now))) return is("expiring", "renewal_due")
  return is("active", expected.length === 0 ? "no_targets" : null)
}

/** The same, from a source's settings. Without an adapter (polling) there are no targets. */
export const statusOf = ({ settings, ...shared }: Shared & { readonly settings: ProviderSettings }): Status => {
  const definition = definitionOf(settings.provider_key, settings.definition_key)
  const adapter = definition?.mode === "instant" ? definition.trigger.adapter : null
  return channelStatus({
    ...shared,
    needsAccount: definition !== undefined && definition.provider.account !== null,
    expected: (adapter?.targets(settings.inputs) ?? []).map(({ key }) => key)
  })
}
