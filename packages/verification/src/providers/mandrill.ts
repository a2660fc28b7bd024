import { createHmac } from "node:crypto"
import { mandrillHandshake } from "../Handshakes.ts"
import type { Provider } from "../Provider.ts"
import { signingKey } from "@tidegate/model/SigningKey"
import { formBody } from "./Forms.ts"
import { sameText, singleHeader } from "./Presented.ts"
import { answer } from "./settings.ts"

/**
 * Mailchimp Transactional (https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/):
 * HMAC-SHA1 over the URL as the operator entered it there and the sorted form. Mailchimp signs its test request with the key `test-webhook`.
 * That key is not accepted, because everybody knows it. The test request is not sent if the HEAD request was answered.
 */
export const mandrill: Provider = {
  types: ["MAILCHIMP"],
  authType: "HMAC",
  settings: [
    {
      name: "webhook_secret_key",
      required: true,
      secret: true,
      aliases: ["secret", "webhook_key"],
      problem: (value) => (value === "test-webhook" ? "must not be the key of Mailchimp's trial request" : null)
    }
  ],
  answer: answer("200", null),
  verification: {
    kind: "code",
    age: null,
    compile: ({ webhook_secret_key = "" }) => {
      const key = webhook_secret_key === "test-webhook" ? null : signingKey(webhook_secret_key, "utf8")
      if (key === null) return null
      return ({ body, headers, url }) => {
        const signature = singleHeader(headers, "x-mandrill-signature")
        const fields = formBody(headers, body)
        if (signature === null || fields === null) return false
        // Mailchimp never sends a name twice; it is unknown which of two values it would sign.
        if (fields.length === 0 || new Set(fields.map(({ name }) => name)).size !== fields.length) return false
        const hmac = createHmac("sha1", key).update(url, "utf8")
        for (const { name, value } of fields.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
          hmac.update(name, "utf8").update(value)
        }
        return sameText(signature, hmac.digest("base64"))
      }
    }
  },
  handshake: mandrillHandshake
}
