import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { codeProviders } from "../../../src/providers/code.ts"
import { fixture, inbound, now } from "./inbound.ts"

const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey.export({ type: "spki", format: "der" })
const ed = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" })

const auths: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  TWILIO: { webhook_secret_key: "secret" },
  DISCORD: { public_key: ed.subarray(-32).toString("hex") },
  DISCORD_EVENTS: { public_key: ed.subarray(-32).toString("hex") },
  SENDGRID: { public_key: ec.toString("base64") },
  PAYPAL: { webhook_id: "3WA07241VT312694T" },
  MAILGUN: { webhook_secret_key: "secret" },
  AWS_SNS: {},
  FUSIONAUTH: { public_key: ec.toString("base64") },
  MAILCHIMP: { webhook_secret_key: "secret" },
  MICROSOFT_GRAPH: { api_key: "secret" }
}

const paypalUrl = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42"
const snsUrl = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-7ff5.pem"

/** Names whose values are read, so that random values get as deep as they can. */
const headerNames = [
  "x-twilio-signature",
  "x-mandrill-signature",
  "x-signature-ed25519",
  "x-signature-timestamp",
  "x-twilio-email-event-webhook-signature",
  "x-twilio-email-event-webhook-timestamp",
  "paypal-transmission-id",
  "paypal-transmission-time",
  "paypal-transmission-sig",
  "paypal-cert-url",
  "paypal-auth-algo",
  "x-fusionauth-signature-jwt",
  "content-type"
]
const plausible = [
  String(now),
  "2030-01-01T00:00:00Z",
  "SHA256withRSA",
  paypalUrl,
  "application/x-www-form-urlencoded",
  "AAAA",
  "ab".repeat(64),
  `${Buffer.from('{"alg":"ES256"}').toString("base64url")}.e30.AAAA`,
  "",
  "\u00ff\u0000"
]
const memberNames = ["signature", "timestamp", "token", "value", "clientState", "Type", "Message", "MessageId"]
const snsMembers = { SignatureVersion: "2", SigningCertURL: snsUrl, Signature: "AAAA", TopicArn: "t", Timestamp: "x" }

const byte = Schema.Number.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 255 }))
const bytes = Arbitrary.array(Arbitrary.schema(byte), { minLength: 0, maxLength: 120 })
const header = Arbitrary.schema(Schema.Union([Schema.Literals(plausible), Schema.String]))
const members = Arbitrary.schema(Schema.Record(Schema.Literals(memberNames), Schema.Json))
const headers = Arbitrary.array(header, { minLength: headerNames.length, maxLength: headerNames.length })

const certificates = [() => undefined, () => "no certificate", () => fixture("paypal.pem"), () => fixture("sns.pem")]

describe("Unsigned random requests", () => {
  for (const provider of codeProviders) {
    for (const type of provider.types) {
      const { verification } = provider
      if (verification.kind !== "code") expect.fail(`${type} is not verified by code`)
      const checks = certificates.map(
        (certificates) =>
          verification.compile(auths[type] ?? {}, certificates) ?? expect.fail(`the settings of ${type} do not compile`)
      )

      const refuse = (request: Parameters<(typeof checks)[number]>[0]) => {
        for (const check of checks) expect(check(request)).not.toBe(true)
        provider.handshake?.(request, auths[type] ?? {})
      }

      it.prop(`Random ${type} requests are refused`, { bytes, headers, members, url: Schema.String }, (sample) => {
        const values = Object.fromEntries(headerNames.map((name, index) => [name, sample.headers[index]]))
        const url = `https://hooks.example/src_1?${sample.url}`
        const bodies = [
          Uint8Array.from(sample.bytes),
          JSON.stringify(sample.members),
          JSON.stringify({ ...snsMembers, ...sample.members }),
          JSON.stringify({ ...sample.members, value: [sample.members], signature: sample.members }),
          new URLSearchParams({ [sample.url]: sample.url, signature: sample.url, token: "t" }).toString()
        ]
        for (const body of bodies) {
          for (const headers of [values, {}]) refuse(inbound({ url, body, headers }))
        }
        refuse(inbound({ url: sample.url, headers: values, method: sample.url, body: bodies[0]! }))
      })
    }
  }
})
