import type { JsonObject } from "./Presented.ts"

/**
 * A host of SNS itself. The region is spelled out, because a looser pattern also matches `sns.s3-us-west-2.…`, which is a bucket that
 * anybody can own. The whole URL is matched as text and not parsed, so no user, port, dot or letter case can change its meaning for the
 * client that fetches it.
 */
const origin = String.raw`^https:\/\/sns\.[a-z]{2}(?:-[a-z]+){1,3}-\d{1,2}\.amazonaws\.com(?:\.cn)?`

/** The file name is matched too: other paths of the host may return content that a caller put there. */
const certificateUrl = new RegExp(String.raw`${origin}\/SimpleNotificationService-[0-9A-Za-z]{1,64}\.pem$`)

const confirmationUrl = new RegExp(String.raw`${origin}\/\?[!-~]{1,2048}$`)

export const isCertificateUrl = (url: unknown): url is string => typeof url === "string" && certificateUrl.test(url)

/** The URL that confirms the subscription in `message`; null if it would do anything else. */
export const confirmUrlOf = (message: JsonObject): string | null => {
  const { SubscribeURL: url, Token: token, TopicArn: topic } = message
  if (typeof url !== "string" || typeof token !== "string" || typeof topic !== "string") return null
  if (!confirmationUrl.test(url)) return null
  const query = Array.from(new URLSearchParams(url.slice(url.indexOf("?"))))
  const expected = new Map([
    ["Action", "ConfirmSubscription"],
    ["TopicArn", topic],
    ["Token", token]
  ])
  const isComplete = query.length === expected.size && new Map(query).size === expected.size
  return isComplete && query.every(([name, value]) => expected.get(name) === value) ? url : null
}
