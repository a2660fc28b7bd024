import { createHmac } from "node:crypto"
import type { InboundRequest, Provider } from "../Provider.ts"
import { signingKey } from "@tidegate/model/SigningKey"
import { formFields, isForm } from "./Forms.ts"
import { isJsonObject, isOfAge, jsonBody, sameText, unixSeconds } from "./Presented.ts"
import { answer, webhookSecret } from "./settings.ts"

/**
 * Mailgun retries for eight hours, and a retry repeats the timestamp and the signature of the first attempt. A shorter limit would lose
 * the events of a longer outage.
 */
const age = { past: 8 * 3600 + 300, ahead: 300 }

const names = ["timestamp", "token", "signature", "parent-signature"]

/**
 * The signature object of a JSON webhook, or the form fields of the same names that routes and old webhooks send (multipart if the mail has
 * attachments).
 */
const signatureOf = ({ body, headers }: InboundRequest): Readonly<Record<string, unknown>> | null => {
  if (isForm(headers)) {
    const fields = formFields(headers, body, names)
    return fields === null ? null : Object.fromEntries(fields)
  }
  const signature = jsonBody(body)?.["signature"]
  return isJsonObject(signature) ? signature : null
}

/**
 * https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks: HMAC-SHA256 over
 * `{timestamp}{token}`; events of a subaccount carry a second one with the key of its parent.
 *
 * The signature does not cover the event: somebody who has seen a signature can attach it to any body. The age limits for how long.
 */
export const mailgun: Provider = {
  types: ["MAILGUN"],
  authType: "HMAC",
  settings: [{ ...webhookSecret("utf8"), aliases: ["secret", "signing_key"] }],
  answer: answer("200", null),
  verification: {
    kind: "code",
    age: age,
    compile: ({ webhook_secret_key = "" }) => {
      const key = signingKey(webhook_secret_key, "utf8")
      if (key === null) return null
      return (request) => {
        const found = signatureOf(request)
        if (found === null) return false
        const { timestamp: written, token } = found
        // The timestamp is a text in the documentation; older accounts send a number.
        const timestamp = typeof written === "number" ? String(written) : written
        if (typeof timestamp !== "string" || typeof token !== "string" || token === "") return false
        const seconds = unixSeconds(timestamp)
        if (seconds === null || !isOfAge(age, seconds, request.nowSeconds)) return false
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
