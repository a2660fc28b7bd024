import { crc32 } from "node:zlib"
import type { Provider } from "../Provider.ts"
import { certificateReader } from "./Certificate.ts"
import { base64Bytes, isOfAge, singleHeader } from "./Presented.ts"
import { verifies } from "./PublicKey.ts"
import { anyAnswer, usualAge } from "./settings.ts"

/** The whole URL is matched as text and not parsed: so no user, port, dot, letter case or query can change its meaning. */
const certificateUrl =
  /^https:\/\/(?:api|api-m|api\.sandbox|api-m\.sandbox)\.paypal\.com\/v1\/notifications\/certs\/CERT-[0-9A-Za-z-]{1,64}$/

/** The certificate name that PayPal's own SDKs require. */
const commonName = /^messageverificationcerts(?:\.[a-z0-9-]+)*\.paypal\.com$/i

const webhookId = /^\w{1,50}$/

/** No `|`, so that nothing can move from one signed field into the next. */
const transmissionId = /^[\w-]{1,64}$/

const transmissionTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

/**
 * https://developer.paypal.com/api/rest/webhooks/rest/: RSA with SHA-256 over `{id}|{time}|{webhookId}|{crc32(body)}`,
 * verified with the certificate at PAYPAL-CERT-URL. The time is that of the HTTP transmission, so a retry has its own.
 *
 * A CRC-32 protects a body against accidents only: somebody who has seen a genuine transmission can make another body with the
 * same sum. The tolerance limits for how long.
 */
export const paypal: Provider = {
  types: ["PAYPAL"],
  authType: "HMAC",
  settings: [
    {
      name: "webhook_id",
      required: true,
      secret: false,
      problem: (value) => (webhookId.test(value) ? null : "must be the ID of the webhook at PayPal")
    }
  ],
  answer: anyAnswer,
  verification: {
    kind: "code",
    age: usualAge,
    compile: ({ webhook_id = "" }, certificates) => {
      if (!webhookId.test(webhook_id)) return null
      const read = certificateReader(commonName)
      return ({ body, headers, nowSeconds }) => {
        const id = singleHeader(headers, "paypal-transmission-id")
        const time = singleHeader(headers, "paypal-transmission-time")
        const url = singleHeader(headers, "paypal-cert-url")
        const signature = base64Bytes(singleHeader(headers, "paypal-transmission-sig") ?? "")
        if (id === null || time === null || url === null || signature === null) return false
        if (singleHeader(headers, "paypal-auth-algo") !== "SHA256withRSA") return false
        if (!transmissionId.test(id) || !transmissionTime.test(time) || !certificateUrl.test(url)) return false
        // NaN if the date does not exist: NaN passes no comparison.
        if (!isOfAge(usualAge, Date.parse(time) / 1000, nowSeconds)) return false

        const pem = certificates(url)
        if (pem === undefined) return { certificateUrl: url }
        const certificate = read(pem, nowSeconds)
        const signed = Buffer.from(`${id}|${time}|${webhook_id}|${crc32(body)}`, "latin1")
        return certificate !== null && verifies("sha256", signed, certificate.key, signature)
      }
    }
  }
}
