import { Schema } from "effect"
import { text } from "./Settings.ts"

/** Where Amazon's services are, and services that speak their protocols. */

export const AwsRegion = text
  .check(
    Schema.isPattern(/^[a-z\d][a-z\d-]{0,62}$/, { message: "must be at most 63 small letters, digits and dashes" })
  )
  .annotate({ examples: ["eu-central-1"] })

/** The origin of one of Amazon's services in a region. */
export const awsOrigin = (service: string, region: string): string =>
  `https://${service}.${region}.${region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com"}`
