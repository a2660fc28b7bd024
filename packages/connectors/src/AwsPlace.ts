import { Schema } from "effect"
import { HttpUrl, setting, text } from "./Settings.ts"

/** Where Amazon's services are, and services that speak their protocols. */

export const AwsRegion = text
  .check(
    Schema.isPattern(/^[a-z\d][a-z\d-]{0,62}$/, { message: "must be at most 63 small letters, digits and dashes" })
  )
  .annotate({ examples: ["eu-central-1"] })

const Endpoint = HttpUrl(512).check(
  Schema.makeFilter((written: string) => {
    const url = URL.parse(written)
    return (url?.pathname === "/" && url.search === "") || "must be an origin: without a path and a query"
  })
)

/** The setting with the origin of a service that is not at its usual place. */
export const endpointOf = (description: string) => setting(Endpoint.annotate({ description }), null)

/** The origin of one of Amazon's services in a region. */
export const awsOrigin = (service: string, region: string): string =>
  `https://${service}.${region}.${region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com"}`
