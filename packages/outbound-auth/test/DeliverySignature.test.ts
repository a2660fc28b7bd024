import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { Webhook } from "standardwebhooks"
import { compileScheme } from "@tidegate/verification/SignatureScheme"
import type { Headers, SignatureScheme, SignedRequest } from "@tidegate/verification/SignatureScheme"
import { prepareSigningSecret, signDelivery, whsecOf } from "@tidegate/outbound-auth/DeliverySignature"

const body = Buffer.from('{"id":1,"name":"Zoë","amount":12.50}', "utf8")
const prepare = (secret: string) => Result.getOrThrow(prepareSigningSecret(secret))

const raw = "gws_0123456789abcdef"
const whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const attempt = { webhookId: "evt_01", timestampSeconds: 1_700_000_000, body }

/** The reference implementation; it looks at the real clock, so what it is to accept is signed for now. */
const receiver = (secret: string) =>
  secret.startsWith("whsec_") ? new Webhook(secret) : new Webhook(secret, { format: "raw" })

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe("signDelivery", () => {
  it("A signature with a plain secret equals the one of openssl", () => {
    expect(signDelivery({ ...attempt, secrets: [prepare(raw)] })).toStrictEqual({
      "x-gateway-timestamp": "1700000000",
      // printf '1700000000.{"id":1,"name":"Zoë","amount":12.50}' | openssl dgst -sha256 -hmac gws_0123456789abcdef -r
      "x-gateway-signature": "v1=3e859ac5fa4d32fbe7fc8e698eb74aa3d9aed2cf445e518fd4ffdcee5f528a72",
      "webhook-id": "evt_01",
      "webhook-timestamp": "1700000000",
      // printf 'evt_01.1700000000.{"id":1,"name":"Zoë","amount":12.50}' |
      //   openssl dgst -sha256 -hmac gws_0123456789abcdef -binary | base64
      "webhook-signature": "v1,n1vRj++toUu3wUTOAheOHMcks0Bje/wQs2CEbixBRpM="
    })
  })

  it("A signature with a whsec_ secret equals the one of openssl: each header has its own key", () => {
    const headers = signDelivery({ ...attempt, secrets: [prepare(whsec)] })
    // printf '1700000000.{"id":1,…}' | openssl dgst -sha256 -hmac whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw -r
    expect(headers["x-gateway-signature"]).toBe("v1=6597f28207e8016f207ae195463dbd1017a29c6f9407f8e1697c888b1588b04f")
    // printf 'evt_01.1700000000.{"id":1,…}' | openssl dgst -sha256 -mac HMAC -binary
    //   -macopt hexkey:$(printf MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw | base64 -d | xxd -p) | base64
    expect(headers["webhook-signature"]).toBe("v1,TWdRVVSNanQ2DvR/WhfLM1+hUBTACxt6nnEa79B3mOE=")
  })

  it("Both headers list one signature per secret during a rotation, newest first", () => {
    const headers = signDelivery({ ...attempt, secrets: [prepare(whsec), prepare(raw)] })
    expect(headers["x-gateway-signature"]).toBe(
      "v1=6597f28207e8016f207ae195463dbd1017a29c6f9407f8e1697c888b1588b04f," +
        "v1=3e859ac5fa4d32fbe7fc8e698eb74aa3d9aed2cf445e518fd4ffdcee5f528a72"
    )
    expect(headers["webhook-signature"]).toBe(
      "v1,TWdRVVSNanQ2DvR/WhfLM1+hUBTACxt6nnEa79B3mOE= v1,n1vRj++toUu3wUTOAheOHMcks0Bje/wQs2CEbixBRpM="
    )
  })

  it("The whsec_ form of any secret works in the reference implementation", () => {
    const secret = `gws_${"0123456789abcdef".repeat(4)}`
    for (const one of [secret, raw, whsec, "ein Geheimnis: ü"]) {
      const headers = signDelivery({ ...attempt, timestampSeconds: nowSeconds(), secrets: [prepare(one)] })
      expect(whsecOf(one)).toMatch(/^whsec_[A-Za-z0-9+/]+=*$/)
      expect(new Webhook(whsecOf(one)).verify(body, { ...headers })).toEqual(JSON.parse(body.toString()))
    }
    // The secret itself is none that the library opens.
    expect(() => new Webhook(secret).verify(body, {})).toThrow()
  })

  it.each([
    ["a plain secret", [raw]],
    ["a whsec_ secret", [whsec]],
    ["two secrets", [whsec, raw]],
    ["three secrets", ["gws_new-new-new", raw, whsec]]
  ])("The reference implementation verifies %s and rejects everything else", (_, secrets) => {
    const [first, ...others] = secrets.map(prepare)
    expect(first).toBeDefined()
    const headers = signDelivery({ ...attempt, secrets: [first!, ...others], timestampSeconds: nowSeconds() })
    for (const secret of secrets) {
      expect(receiver(secret).verify(body, headers)).toStrictEqual(JSON.parse(body.toString("utf8")))
    }
    expect(() => receiver("gws_some-other-secret").verify(body, headers)).toThrow("No matching signature found")
    const altered = Buffer.from(body.toString("utf8").replace("12.50", "12.51"), "utf8")
    for (const secret of secrets) {
      expect(() => receiver(secret).verify(altered, headers)).toThrow("No matching signature found")
      expect(() => receiver(secret).verify(body, { ...headers, "webhook-id": "evt_02" })).toThrow("No matching")
    }
  })

  it("The reference implementation rejects a signature older than five minutes", () => {
    const headers = signDelivery({ ...attempt, secrets: [prepare(raw)], timestampSeconds: nowSeconds() - 302 })
    expect(() => receiver(raw).verify(body, headers)).toThrow("Message timestamp too old")
  })

  const gateway: SignatureScheme = {
    header: "x-gateway-signature",
    separator: ",",
    prefix: "v1=",
    algorithm: "sha256",
    encoding: "hex",
    content: "{timestamp}.{body}",
    timestamp: { from: { header: "x-gateway-timestamp" }, unit: "seconds", toleranceSeconds: 300 },
    secret: "utf8"
  }
  const received = (headers: Headers, body: Uint8Array): SignedRequest => ({
    method: "POST",
    url: "https://orders.test/hook",
    headers,
    body,
    nowSeconds: attempt.timestampSeconds
  })
  const byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))

  it.prop(
    "A signature over any bytes verifies with each secret and fails for a changed body",
    {
      bytes: Arbitrary.array(Arbitrary.schema(byte), { minLength: 1, maxLength: 200 }),
      old: Schema.String.check(Schema.isMinLength(12)),
      at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1000 })),
      flip: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 255 }))
    },
    ({ at, bytes, flip, old: suffix }) => {
      const old = `gws_${suffix.toWellFormed()}`
      const sent = Buffer.from(bytes)
      const headers = signDelivery({ ...attempt, secrets: [prepare(whsec), prepare(old)], body: sent })
      const altered = Buffer.from(sent)
      altered[at % sent.length]! ^= flip
      for (const secret of [whsec, old]) {
        const check = compileScheme(gateway, secret)
        expect(check?.(received(headers, sent))).toBe(true)
        expect(check?.(received(headers, altered))).toBe(false)
      }
    }
  )
})

describe("Former secret", () => {
  it("A former secret signs beside the current one until its end time, whenever it was prepared", () => {
    const former = Result.getOrThrow(prepareSigningSecret("the former secret", attempt.timestampSeconds * 1000))
    const count = (timestampSeconds: number) => {
      const headers = signDelivery({ ...attempt, timestampSeconds, secrets: [prepare(raw), former] })
      return [headers["x-gateway-signature"].split(",").length, headers["webhook-signature"].split(" ").length]
    }
    expect(count(attempt.timestampSeconds - 1)).toEqual([2, 2])
    expect(count(attempt.timestampSeconds)).toEqual([1, 1])
  })
})

describe("prepareSigningSecret", () => {
  it.each([
    ["", "must be at least 12 characters"],
    ["12345678901", "must be at least 12 characters"],
    ["whsec_not base64", "must be base64 after whsec_"],
    ["whsec_abcdefghi", "must be base64 after whsec_"],
    ["whsec_abcdefg===", "must be base64 after whsec_"],
    ["\ud800 12345678901", "must be valid Unicode text"]
  ])("Signing secret %j is rejected", (secret, why) => {
    expect(prepareSigningSecret(secret)).toStrictEqual(Result.fail(why))
  })

  it.each(["123456789012", "whsec_AAAAAAA=", "whsec_AAAAAAA", "WHSEC_is-not-a-prefix", "ünïcödé-sécrèt"])(
    "Signing secret %j is accepted",
    (secret) => {
      expect(Result.isSuccess(prepareSigningSecret(secret))).toBe(true)
    }
  )

  it("A prepared secret does not appear when it is printed", () => {
    expect(JSON.stringify(prepare(raw))).not.toContain("0123456789abcdef")
  })
})
