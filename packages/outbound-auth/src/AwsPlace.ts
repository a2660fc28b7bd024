/** Where Amazon's services are, and services that speak their protocols. */

/** A region, as hosts and signatures have it. */
export const awsRegion = {
  pattern: /^[a-z\d][a-z\d-]{0,62}$/,
  message: "must be at most 63 small letters, digits and dashes"
} as const

/** The origin of one of Amazon's services in a region. */
export const awsOrigin = (service: string, region: string): string =>
  `https://${service}.${region}.${region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com"}`
