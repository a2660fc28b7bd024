import { describe, expect, it } from "@effect/vitest"
import { sign } from "node:crypto"
import { bytes, changed, checkOf, fixture, hasCheck, inbound, now, problemOf } from "./inbound.ts"

// fixtures/code/make.sh: signed by the openssl command line, the CRC-32 from the trailer of gzip.
const vector: { body: string; crc: string; signature: string } = JSON.parse(fixture("vectors.json")).paypal
const url = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-ad47cb8d"
const webhookId = "3WA07241VT312694T"
const good = {
  "paypal-auth-algo": "SHA256withRSA",
  "paypal-cert-url": url,
  "paypal-transmission-id": "b9d46480-2162-11ee-a2ae-61fbe51a886c",
  "paypal-transmission-time": "2030-01-01T00:00:00Z",
  "paypal-transmission-sig": vector.signature
}

const verifyWith = (
  pem: string | undefined,
  over: Readonly<Record<string, string | ReadonlyArray<string> | undefined>> = {},
  { body = vector.body, id = webhookId, nowSeconds = now } = {}
) => checkOf("PAYPAL", { webhook_id: id }, () => pem)(inbound({ body, nowSeconds, headers: { ...good, ...over } }))

const pem = fixture("paypal.pem")
const key = fixture("signer.key.pem")
const signed = (time: string, id = good["paypal-transmission-id"]): string =>
  sign("sha256", bytes(`${id}|${time}|${webhookId}|${vector.crc}`), key).toString("base64")

describe("PAYPAL", () => {
  it("PayPal verification accepts what openssl signed after the certificate is fetched", () => {
    expect(verifyWith(undefined)).toStrictEqual({ certificateUrl: url })
    expect(verifyWith(pem)).toBe(true)
  })

  it("PayPal verification looks the certificate up by its URL", () => {
    const asked: Array<string> = []
    const check = checkOf("PAYPAL", { webhook_id: webhookId }, (url) => {
      asked.push(url)
      return pem
    })
    const sandbox = url.replace("api.paypal.com", "api-m.sandbox.paypal.com")
    expect(check(inbound({ body: vector.body, headers: { ...good, "paypal-cert-url": sandbox } }))).toBe(true)
    expect(asked).toStrictEqual([sandbox])
  })

  it("PayPal verification refuses another body, webhook, transmission or signature", () => {
    expect(verifyWith(pem, {}, { body: changed(vector.body) })).toBe(false)
    expect(verifyWith(pem, {}, { body: JSON.stringify(JSON.parse(vector.body)) })).toBe(false)
    expect(verifyWith(pem, {}, { body: "" })).toBe(false)
    expect(verifyWith(pem, {}, { id: changed(webhookId) })).toBe(false)
    expect(verifyWith(pem, { "paypal-transmission-id": changed(good["paypal-transmission-id"]) })).toBe(false)
    expect(verifyWith(pem, { "paypal-transmission-time": "2030-01-01T00:00:01Z" })).toBe(false)
    expect(verifyWith(pem, { "paypal-transmission-sig": changed(vector.signature) })).toBe(false)
    const hex = Buffer.from(vector.signature, "base64").toString("hex")
    expect(verifyWith(pem, { "paypal-transmission-sig": hex })).toBe(false)
    for (const algorithm of ["SHA1withRSA", "sha256withrsa", "none"]) {
      expect(verifyWith(pem, { "paypal-auth-algo": algorithm })).toBe(false)
    }
  })

  it("PayPal verification refuses missing, empty or repeated headers without fetching a certificate", () => {
    for (const [name, value] of Object.entries(good)) {
      for (const wrong of [undefined, "", [value, value]]) {
        expect(verifyWith(undefined, { [name]: wrong }), name).toBe(false)
        expect(verifyWith(pem, { [name]: wrong }), name).toBe(false)
      }
    }
  })

  it("PayPal verification refuses replays outside the tolerance and invalid times", () => {
    for (const [offset, expected] of [
      [-300, true],
      [300, true],
      [-301, false],
      [301, false]
    ] as const) {
      const time = new Date((now + offset) * 1000).toISOString()
      const headers = { "paypal-transmission-time": time, "paypal-transmission-sig": signed(time) }
      expect(verifyWith(pem, headers), time).toBe(expected)
    }
    for (const time of [
      "2030-01-01",
      "2029-02-31T00:00:00Z",
      "1893456000",
      "2030-01-01 00:00:00Z",
      "2030-99-01T00:00:00Z"
    ]) {
      const headers = { "paypal-transmission-time": time, "paypal-transmission-sig": signed(time) }
      expect(verifyWith(pem, headers), time).toBe(false)
    }
  })

  it("PayPal verification refuses a separator inside a field that would shift the next one", () => {
    const time = good["paypal-transmission-time"]
    const id = `x|${time}|${webhookId}|${vector.crc}`
    expect(verifyWith(pem, { "paypal-transmission-id": id, "paypal-transmission-sig": signed(time, id) })).toBe(false)
    expect(hasCheck("PAYPAL", { webhook_id: "a|b" })).toBe(false)
    expect(problemOf("PAYPAL", "webhook_id", "a|b")).not.toBeNull()
    expect(problemOf("PAYPAL", "webhook_id", "WEBHOOK_ID")).toBeNull()
    expect(hasCheck("PAYPAL", {})).toBe(false)
  })
})

describe("PAYPAL certificate URL", () => {
  for (const host of ["api.paypal.com", "api-m.paypal.com", "api.sandbox.paypal.com", "api-m.sandbox.paypal.com"]) {
    it(`A PayPal certificate is fetched from ${host}`, () => {
      const certificateUrl = url.replace("api.paypal.com", host)
      expect(verifyWith(undefined, { "paypal-cert-url": certificateUrl })).toStrictEqual({ certificateUrl })
    })
  }

  const path = "/v1/notifications/certs/CERT-360caa42"
  for (const wrong of [
    `http://api.paypal.com${path}`,
    `https://api.paypal.com.evil.test${path}`,
    `https://evil.test/api.paypal.com${path}`,
    `https://evil-api.paypal.com${path}`,
    `https://evilpaypal.com${path}`,
    `https://www.paypal.com${path}`,
    `https://paypal.com${path}`,
    `https://apixpaypal.com${path}`,
    `https://api.paypal.com@evil.test${path}`,
    `https://api.paypal.com:x@evil.test${path}`,
    `https://user@api.paypal.com${path}`,
    `https://api.paypal.com.${path}`,
    `https://API.PAYPAL.COM${path}`,
    `HTTPS://api.paypal.com${path}`,
    `https://api.paypal.com:443${path}`,
    `https://api.paypal.com:8443${path}`,
    `https://api.paypal.com${path}?x=1`,
    `https://api.paypal.com${path}#x`,
    `https://api.paypal.com${path}/`,
    `https://api.paypal.com${path}/../../../evil`,
    `https://api.paypal.com/v1/notifications/certs/../../evil`,
    `https://api.paypal.com/v1/notifications/certs/CERT-%2e%2e%2fx`,
    `https://api.paypal.com/v1/notifications/certs/CERT-`,
    `https://api.paypal.com\\@evil.test${path}`,
    `https:\\\\api.paypal.com${path}`,
    `//api.paypal.com${path}`,
    ` https://api.paypal.com${path}`,
    `https://api.paypal.com${path}\n`,
    `https://api.paypal.com${path}\nhttps://evil.test/`,
    `https://evil.test/\nhttps://api.paypal.com${path}`,
    `file:///etc/passwd`,
    `https://аpi.paypal.com${path}`
  ]) {
    it(`A PayPal certificate is not fetched from ${JSON.stringify(wrong)}`, () => {
      expect(verifyWith(undefined, { "paypal-cert-url": wrong })).toBe(false)
      expect(verifyWith(pem, { "paypal-cert-url": wrong })).toBe(false)
    })
  }
})

describe("PAYPAL certificate", () => {
  it("A PayPal certificate is refused when it is issued to others, self-signed or invalid", () => {
    for (const name of ["paypal-foreign", "paypal-unnamed", "paypal-website", "paypal-self-signed", "sns"]) {
      expect(verifyWith(fixture(`${name}.pem`)), name).toBe(false)
    }
    for (const wrong of ["", "not PEM", pem.slice(0, 200), key]) expect(verifyWith(wrong)).toBe(false)
  })

  it("A PayPal certificate is refused outside its period of validity", () => {
    for (const year of [2020, 2200]) {
      const time = `${year}-01-01T00:00:00Z`
      const headers = { "paypal-transmission-time": time, "paypal-transmission-sig": signed(time) }
      expect(verifyWith(pem, headers, { nowSeconds: Date.parse(time) / 1000 }), time).toBe(false)
    }
    const time = "2100-01-01T00:00:00Z"
    const headers = { "paypal-transmission-time": time, "paypal-transmission-sig": signed(time) }
    expect(verifyWith(pem, headers, { nowSeconds: Date.parse(time) / 1000 })).toBe(true)
  })

  it("PayPal verification uses the first certificate of a chain", () => {
    expect(verifyWith(pem + fixture("sns.pem"))).toBe(true)
    expect(verifyWith(fixture("sns.pem") + pem)).toBe(false)
  })

  it("PayPal verification uses a new certificate as soon as it is there", () => {
    let current = fixture("paypal-website.pem")
    const check = checkOf("PAYPAL", { webhook_id: webhookId }, () => current)
    const request = inbound({ body: vector.body, headers: good })
    expect(check(request)).toBe(false)
    current = pem
    expect(check(request)).toBe(true)
    expect(check(request)).toBe(true)
  })
})
