import { createHmac } from "node:crypto"
import type { InboundRequest, Provider } from "../Provider.ts"
import { signingKey } from "../SigningKey.ts"
import { formBody, isJsonObject, jsonBody, sameText, unixSeconds, within } from "./Presented.ts"
import { webhookSecret } from "./settings.ts"

const toleranceSeconds = 300

/** The signature object of a JSON webhook, or the same names as fields of the form that routes and old webhooks send. */
const signatureOf = ({ body, headers }: InboundRequest): Readonly<Record<string, unknown>> | null => {
  const fields = formBody(headers, body)
  if (fields === null) {
    const signature = jsonBody(body)?.["signature"]
    return isJsonObject(signature) ? signature : null
  }
  const names = fields.map(([name]) => name)
  // Which of two tokens was signed is a guess.
  return ["timestamp", "token", "signature"].every((name) => names.indexOf(name) === names.lastIndexOf(name))
    ? Object.fromEntries(fields)
    : null
}

/**
 * https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks: HMAC-SHA256 over
 * `{timestamp}{token}`; events of a subaccount carry a second one by the key of its parent.
 *
 * The signature covers no event: who has seen one can put it on any body. The tolerance bounds for how long, and is
 * short for that reason, although Mailgun retries for eight hours.
 */
export const mailgun: Provider = {
  types: ["MAILGUN"],
  authType: "HMAC",
  settings: [{ ...webhookSecret("utf8"), aliases: ["secret", "signing_key"] }],
  verification: {
    kind: "code",
    compile: ({ webhook_secret_key = "" }) => {
      const key = signingKey(webhook_secret_key, "utf8")
      if (key === null) return null
      return (request) => {
        const found = signatureOf(request)
        if (found === null) return false
        const { timestamp: written, token } = found
        // The timestamp is a text in the documentation, and a number in what older accounts send.
        const timestamp = typeof written === "number" ? String(written) : written
        if (typeof timestamp !== "string" || typeof token !== "string" || token === "") return false
        const seconds = unixSeconds(timestamp)
        if (seconds === null || !within(toleranceSeconds, seconds, request.nowSeconds)) return false
        const expected = createHmac("sha256", key)
          .update(timestamp + token, "utf8")
          .digest("hex")
        return [found["signature"], found["parent-signature"]].some(
          (signature) => typeof signature === "string" && sameText(signature, expected)
        )
      }
    }
  }
}
