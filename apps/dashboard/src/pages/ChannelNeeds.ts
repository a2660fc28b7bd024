import type { Row } from "../gateway.ts"
import { wordsOf } from "../parts/Status.tsx"

type Channel = Row<"Channel">

/** What to do about a channel that does not work, by the reason of its status. */
const needs: Readonly<Record<string, string>> = {
  account_missing: "It has no account. Name one in the settings of the source.",
  account_expired: "The provider does not renew the token of its account. Connect the account again.",
  account_revoked:
    "Its account was revoked. Connect the account again, or name another one in the settings of the source.",
  provision_failed: "The provider does not make the subscription. Repair what the error says, then try again.",
  subscription_expired: "Its subscription has ended. Try again; if it ends once more, look at the error.",
  renewal_due: "Its subscription ends soon. The gateway renews it; you need to do nothing.",
  renewal_failed: "Its subscription could not be renewed. The gateway tries again until it ends. Look at the error.",
  provisioning: "The gateway is making its subscriptions. You need to do nothing.",
  source_disabled: "Its source is disabled. Enable the source.",
  no_targets: "The settings of the source select nothing at the provider, so nothing is watched."
}

export const needOf = ({ fallback, status, status_reason }: Channel): string | null => {
  if (status === "fallback") {
    return `Polling stands in${fallback.reason === null ? "" : ` (${fallback.reason.replaceAll("_", " ")})`}: items arrive by the schedule. Repair what the error says, then try again.`
  }
  return status_reason === null ? null : (needs[status_reason] ?? wordsOf(status_reason))
}

/** The gateway repairs these itself, or somebody has caused them on purpose. */
const harmless = new Set<string | null>(["renewal_due", "provisioning", "source_disabled"])

/** Whether somebody has to do something about a channel, so that it goes on. */
export const isTroubled = ({ status, status_reason }: Channel): boolean =>
  (status === "expiring" || status === "error" || status === "fallback") && !harmless.has(status_reason)
