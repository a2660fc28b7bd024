import { didYouMean } from "@tidegate/model/NearestName"
import { providers } from "./Providers.ts"

/** The type of a source whose sender is no provider. */
export const plainType = "WEBHOOK"

/** Providers whose way to sign is not in the table: their sources verify as their `auth_type` says. */
const others = [
  "NYLAS",
  "CLICKUP",
  "GRAFANA",
  "REVENUECAT",
  "AUTH0",
  "KLAVIYO",
  "CUSTOMER_IO",
  "HYGRAPH",
  "SANITY",
  "AFTERSHIP",
  "CLOUDINARY",
  "BIGCOMMERCE",
  "ADYEN",
  "WIX",
  "PIPEDRIVE",
  "MONDAY",
  "STRAVA",
  "TIKTOK",
  "TIKTOK_SHOP",
  "WALMART",
  "FIREBLOCKS",
  "POLAR",
  "EBAY",
  "TWITTER",
  "COURIER",
  "PERSONA",
  "TELNYX",
  "AIRTABLE",
  "UBER",
  "ALCHEMY",
  "LINKEDIN",
  "RECHARGE",
  "CLIO",
  "ETHOCA"
] as const

const types: ReadonlySet<string> = new Set([plainType, ...others, ...providers.flatMap((provider) => provider.types)])

/** What is written of a source's type. */
interface Written {
  readonly type: string
  /** The type that the source has; null: it is new. */
  readonly stored: string | null
  /** Whether its writer says how it verifies, if only that it does not. */
  readonly saysAuthType: boolean
}

/**
 * Why there is no such type of source; null when there is. A name that is only nearly a known one would be a source that verifies nobody while
 * its writer believes otherwise. A vendor that nobody knows here is a type all the same, for who says how it verifies.
 */
export const sourceTypeFault = ({ saysAuthType, stored, type }: Written): string | null => {
  if (type === stored || types.has(type)) return null
  const meant = didYouMean(type, types)
  if (meant !== "") return `is no type of source${meant}`
  return saysAuthType
    ? null
    : "is a type that nobody knows here: say in config.auth_type how it verifies, null for not at all"
}
