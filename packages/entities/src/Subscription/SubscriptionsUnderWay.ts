import { Context } from "effect"

/**
 * The subscriptions that actors of this process hold, and the version by which each is connected or tries to be. Whoever looks for due ones
 * leaves them out while their version is the stored one.
 */
export const SubscriptionsUnderWay = Context.Reference<Map<string, number>>(
  "@tidegate/entities/Subscription/SubscriptionsUnderWay",
  { defaultValue: () => new Map() }
)
