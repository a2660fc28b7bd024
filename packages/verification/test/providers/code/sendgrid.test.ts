import { EventWebhook } from "@sendgrid/eventwebhook"
import { describe, expect, it } from "@effect/vitest"
import { generateKeyPairSync, sign } from "node:crypto"
import type { KeyObject } from "node:crypto"
import { bytes, changed, checkOf, hasCheck, inbound, now, problemOf } from "./inbound.ts"

// The vector of the tests of the official library, https://github.com/sendgrid/sendgrid-nodejs, packages/eventwebhook.
const published = {
  key: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEDr2LjtURuePQzplybdC+u4CwrqDqBaWjcMMsTbhdbcwHBcepxo7yAQGhHPTnlvFYPAZFceEu/1FwCM/QmGUhA==",
  signature: "MEUCIQCtIHJeH93Y+qpYeWrySphQgpNGNr/U+UyUlBkU6n7RAwIgJTz2C+8a8xonZGi6BpSzoQsbVRamr2nlxFDWYNH2j/0=",
  timestamp: "1588788367",
  body: '{"category":"example_payload","event":"test_event","message_id":"message_id"}'
}

const verifyWith = (
  key: string,
  timestamp: string | ReadonlyArray<string> | undefined,
  signature: string | ReadonlyArray<string> | undefined,
  body: string | Uint8Array,
  nowSeconds = now
) =>
  checkOf("SENDGRID", { public_key: key })(
    inbound({
      body,
      nowSeconds,
      headers: {
        "x-twilio-email-event-webhook-signature": signature,
        "x-twilio-email-event-webhook-timestamp": timestamp
      }
    })
  )

describe("SENDGRID published vector", () => {
  const { body, key, signature, timestamp } = published
  const at = Number(timestamp)

  it("The published SendGrid vector is verified with the key in base64, as PEM, and as PEM in one line", () => {
    const pem = `-----BEGIN PUBLIC KEY-----\n${key.slice(0, 64)}\n${key.slice(64)}\n-----END PUBLIC KEY-----\n`
    for (const form of [
      key,
      pem,
      pem.replaceAll("\n", "\r\n"),
      pem.replaceAll("\n", "\\n"),
      pem.replaceAll("\n", " ")
    ]) {
      expect(problemOf("SENDGRID", "public_key", form)).toBeNull()
      expect(verifyWith(form, timestamp, signature, body, at)).toBe(true)
    }
  })

  it("The published SendGrid vector is refused when any part of it changes", () => {
    const foreign =
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqTxd43gyp8IOEto2LdIfjRQrIbsd4SXZkLW6jDutdhXSJCWHw8REntlo7aNDthvj+y7GjUuFDb/R1NGe1OPzpA=="
    expect(verifyWith(foreign, timestamp, signature, body, at)).toBe(false)
    expect(verifyWith(key, timestamp, signature, changed(body), at)).toBe(false)
    expect(verifyWith(key, timestamp, signature, body.replace(":", ": "), at)).toBe(false)
    expect(verifyWith(key, timestamp, signature, "", at)).toBe(false)
    expect(verifyWith(key, String(at + 1), signature, body, at)).toBe(false)
    expect(verifyWith(key, timestamp, signature.replace("YNH2j", "YNH3j"), body, at)).toBe(false)
    expect(verifyWith(key, timestamp, Buffer.from(signature, "base64").toString("hex"), body, at)).toBe(false)
    expect(verifyWith(key, timestamp, signature.slice(0, -1), body, at)).toBe(false)
    for (const missing of [undefined, "", [signature, signature]]) {
      expect(verifyWith(key, timestamp, missing, body, at)).toBe(false)
    }
    for (const missing of [undefined, "", "timestamp", [timestamp, timestamp]]) {
      expect(verifyWith(key, missing, signature, body, at)).toBe(false)
    }
  })
})

describe("SENDGRID", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
  const key = publicKey.export({ type: "spki", format: "der" }).toString("base64")
  const signed = (timestamp: string, body: string | Uint8Array, dsaEncoding: "der" | "ieee-p1363" = "der") => {
    const content = Buffer.concat([bytes(timestamp), typeof body === "string" ? bytes(body) : body])
    return sign("sha256", content, { key: privateKey, dsaEncoding }).toString("base64")
  }

  it("SendGrid verification agrees with the official library", () => {
    const oracle = new EventWebhook()
    const official = oracle.convertPublicKeyToECDSA(key)
    const timestamp = String(now)
    for (const body of ['[{"event":"open","text":"größe"}]\r\n', "[]", ""]) {
      const signature = signed(timestamp, body)
      expect(oracle.verifySignature(official, body, signature, timestamp)).toBe(true)
      expect(verifyWith(key, timestamp, signature, body)).toBe(true)
      expect(oracle.verifySignature(official, `${body} `, signature, timestamp)).toBe(false)
      expect(verifyWith(key, timestamp, signature, `${body} `)).toBe(false)
    }
  })

  it("SendGrid verification accepts bytes that are not text, and refuses another encoding of the signature", () => {
    const body = new Uint8Array([0xff, 0x00, 0xfe])
    expect(verifyWith(key, String(now), signed(String(now), body), body)).toBe(true)
    expect(verifyWith(key, String(now), signed(String(now), body, "ieee-p1363"), body)).toBe(false)
  })

  it("SendGrid verification accepts retries for a day, and no timestamps from the future", () => {
    const day = 86_400
    for (const [offset, expected] of [
      [-day - 300, true],
      [300, true],
      [-day - 301, false],
      [301, false]
    ] as const) {
      const at = String(now + offset)
      expect(verifyWith(key, at, signed(at, "[]"), "[]"), `${offset}`).toBe(expected)
    }
  })

  it("SendGrid settings refuse private keys and keys of another kind", () => {
    const spki = (key: KeyObject) => key.export({ type: "spki", format: "pem" })
    for (const wrong of [
      "",
      "not a key",
      key.slice(0, -8),
      spki(generateKeyPairSync("ec", { namedCurve: "secp384r1" }).publicKey),
      spki(generateKeyPairSync("ed25519").publicKey),
      privateKey.export({ type: "pkcs8", format: "pem" }),
      privateKey.export({ type: "pkcs8", format: "der" }).toString("base64")
    ]) {
      expect(problemOf("SENDGRID", "public_key", wrong)).not.toBeNull()
      expect(hasCheck("SENDGRID", { public_key: wrong })).toBe(false)
    }
    expect(hasCheck("SENDGRID", {})).toBe(false)
  })
})
