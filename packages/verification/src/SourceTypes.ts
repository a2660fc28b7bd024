import { brokerTypes } from "@tidegate/model/BrokerSource"
import { didYouMean } from "@tidegate/model/NearestName"
import { providerType } from "@tidegate/model/ProviderSource"
import { scheduledType } from "@tidegate/model/ScheduledSource"
import { systemType } from "@tidegate/model/SystemSource"
import { otherVendors } from "./OtherVendors.ts"
import { providers } from "./Providers.ts"

/** The type of a source that receives from no known provider. */
export const plainType = "WEBHOOK"

const types: ReadonlySet<string> = new Set([
  plainType,
  providerType,
  systemType,
  scheduledType,
  ...brokerTypes,
  ...Object.keys(otherVendors),
  ...providers.flatMap((provider) => provider.types)
])

/** The written members that decide whether a source's type is valid. */
interface Written {
  readonly type: string
  /** The present type of the source; null if it is new. */
  readonly stored: string | null
  /** Whether `auth_type` is written at all, null included. */
  readonly saysAuthType: boolean
}

/**
 * Why the source type is invalid; null if it is valid. A misspelled type is refused, because the source would not verify its
 * senders while its author believes that it does. An unknown vendor is accepted if `auth_type` is written.
 */
export const sourceTypeFault = ({ saysAuthType, stored, type }: Written): string | null => {
  if (type === stored || types.has(type)) return null
  const meant = didYouMean(type, types)
  if (meant !== "") return `is no type of source${meant}`
  return saysAuthType
    ? null
    : "is a type that nobody knows here: say in config.auth_type how it verifies, null for not at all"
}
