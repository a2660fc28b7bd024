import type { KeyObject } from "node:crypto"
import type { Provider } from "../Provider.ts"
import { base64Bytes, isOfAge, singleHeader, unixSeconds } from "./Presented.ts"
import { publicKeyOf, verifies } from "./PublicKey.ts"
import { anyAnswer } from "./settings.ts"

const keyOf = (text: string): KeyObject | null => {
  const key = publicKeyOf(text)
  return key?.asymmetricKeyDetails?.namedCurve === "prime256v1" ? key : null
}

/**
 * SendGrid retries for 24 hours, and documents neither a tolerance nor whether a retry is signed anew. So a timestamp may be a day
 * old: a replay repeats signed bytes, but a refused retry would lose its events.
 */
const age = { past: 86_400 + 300, ahead: 300 }

/** https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features: ECDSA P-256 with SHA-256 over `{timestamp}{body}`, DER in base64. */
export const sendgrid: Provider = {
  types: ["SENDGRID"],
  authType: "HMAC",
  settings: [
    {
      name: "public_key",
      required: true,
      secret: false,
      aliases: ["verification_key"],
      problem: (value) => (keyOf(value) === null ? "must be a P-256 public key, in base64 or PEM" : null)
    }
  ],
  answer: anyAnswer,
  verification: {
    kind: "code",
    age: age,
    compile: ({ public_key = "" }) => {
      const key = keyOf(public_key)
      if (key === null) return null
      return ({ body, headers, nowSeconds }) => {
        const signature = base64Bytes(singleHeader(headers, "x-twilio-email-event-webhook-signature") ?? "")
        const timestamp = singleHeader(headers, "x-twilio-email-event-webhook-timestamp")
        if (signature === null || timestamp === null) return false
        const seconds = unixSeconds(timestamp)
        if (seconds === null || !isOfAge(age, seconds, nowSeconds)) return false
        return verifies("sha256", Buffer.concat([Buffer.from(timestamp, "latin1"), body]), key, signature)
      }
    }
  }
}
