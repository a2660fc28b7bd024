import { snsHandshake } from "../Handshakes.ts"
import type { Provider } from "../Provider.ts"
import { certificateReader } from "./Certificate.ts"
import { base64Bytes, isOfAge, jsonBody } from "./Presented.ts"
import type { JsonObject } from "./Presented.ts"
import { verifies } from "./PublicKey.ts"
import { answer } from "./settings.ts"
import { isCertificateUrl } from "./snsUrls.ts"

/** E.g. `sns.amazonaws.com`, `sns-signing.af-south-1.amazonaws.com`, `sns-cn-north-1.amazonaws.com.cn`. */
const commonName = /^sns(?:[.-][a-z0-9.-]+)?\.amazonaws\.com(?:\.cn)?$/

const notification = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
const confirmation = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]

const signedNames: ReadonlyMap<unknown, ReadonlyArray<string>> = new Map([
  ["Notification", notification],
  ["SubscriptionConfirmation", confirmation],
  ["UnsubscribeConfirmation", confirmation]
])

const algorithms: ReadonlyMap<unknown, "sha1" | "sha256"> = new Map([
  ["1", "sha1"],
  ["2", "sha256"]
])

/** The text that SNS signs; null if a signed field is missing, or if the message has a field that its type does not sign. */
const canonicalText = (message: JsonObject): string | null => {
  const names = signedNames.get(message["Type"])
  if (names === undefined) return null
  const unsigned = [...notification, ...confirmation].filter((name) => !names.includes(name))
  if (unsigned.some((name) => (message[name] ?? null) !== null)) return null
  let text = ""
  for (const name of names) {
    const value = message[name] ?? null
    if (value === null && name === "Subject") continue
    if (typeof value !== "string" || !value.isWellFormed()) return null
    text += `${name}\n${value}\n`
  }
  return text
}

/**
 * The timestamp is the time of publishing. SNS retries HTTP endpoints for at most an hour and does not sign anew, and a throttle policy
 * may delay a message before its first attempt: eight hours cover both.
 */
const age = { past: 8 * 3600 + 300, ahead: 300 }

const timestampForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

const topicArn = /^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]{1,256}(?:\.fifo)?$/

/**
 * https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html: RSA over the named fields, verified with the
 * certificate at SigningCertURL. SNS posts it as text/plain. Raw message delivery is not signed, and is refused.
 *
 * Set `topic_arn`: without it the signature proves only that SNS sent the message, and anybody can make SNS send one from a topic of their
 * own.
 */
export const sns: Provider = {
  types: ["AWS_SNS"],
  authType: "HMAC",
  settings: [
    {
      name: "topic_arn",
      required: false,
      secret: false,
      problem: (value) => (topicArn.test(value) ? null : "must be the ARN of an SNS topic")
    }
  ],
  answer: answer("2xx", 15),
  verification: {
    kind: "code",
    age: age,
    compile: ({ topic_arn }, certificates) => {
      const read = certificateReader(commonName)
      return ({ body, nowSeconds }) => {
        const message = jsonBody(body)
        const text = message === null ? null : canonicalText(message)
        if (message === null || text === null) return false
        const { Signature: encoded, SigningCertURL: url, TopicArn: topic } = message
        const algorithm = algorithms.get(message["SignatureVersion"])
        const signature = typeof encoded === "string" ? base64Bytes(encoded) : null
        if (algorithm === undefined || signature === null) return false
        if (topic_arn !== undefined && topic !== topic_arn) return false
        if (!isCertificateUrl(url)) return false
        const { Timestamp: published } = message
        if (typeof published !== "string" || !timestampForm.test(published)) return false
        if (!isOfAge(age, Date.parse(published) / 1000, nowSeconds)) return false

        const pem = certificates(url)
        if (pem === undefined) return { certificateUrl: url }
        const certificate = read(pem, nowSeconds)
        return certificate !== null && verifies(algorithm, Buffer.from(text, "utf8"), certificate.key, signature)
      }
    }
  },
  handshake: snsHandshake
}
