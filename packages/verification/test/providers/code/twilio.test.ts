import { describe, expect, it } from "@effect/vitest"
import twilioSdk from "twilio"
import { getExpectedBodyHash, getExpectedTwilioSignature } from "twilio/lib/webhooks/webhooks.js"
import { changed, checkOf, hasCheck, inbound, now } from "./inbound.ts"

const { validateRequest, validateRequestWithBody } = twilioSdk
const token = "12345"
const check = checkOf("TWILIO", { webhook_secret_key: token })
const form = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" }

type Params = Record<string, string | ReadonlyArray<string>>

const encode = (params: Params): string =>
  new URLSearchParams(
    Object.entries(params).flatMap(([name, value]) => [value].flat().map((one) => [name, one] as [string, string]))
  ).toString()

const posted = (url: string, body: string, signature: string | ReadonlyArray<string> | undefined) =>
  check(inbound({ url, body, headers: { ...form, "x-twilio-signature": signature } }))

// The worked example of https://www.twilio.com/docs/usage/security#validating-requests.
const url = "https://mycompany.com/myapp.php?foo=1&bar=2"
const published = "0/KCTR6DLpKmkAf8muzZqo1nDgQ="
const params = {
  Digits: "1234",
  CallSid: "CA1234567890ABCDE",
  Caller: "+12349013030",
  From: "+12349013030",
  To: "+18005551212"
}
const body = encode(params)

describe("TWILIO published example", () => {
  it("The published Twilio example is verified", () => {
    expect(posted(url, body, published)).toBe(true)
  })

  it("The published Twilio example is refused when any part of it changes", () => {
    expect(posted(url, body.replace("1234&", "1235&"), published)).toBe(false)
    expect(posted(`${url}&baz=3`, body, published)).toBe(false)
    expect(posted(url.replace("mycompany", "mycompany2"), body, published)).toBe(false)
    expect(posted(url.replace("https", "http"), body, published)).toBe(false)
    expect(posted(url, `${body}&Extra=1`, published)).toBe(false)
    expect(posted(url, body, changed(published))).toBe(false)
    expect(
      checkOf("TWILIO", { webhook_secret_key: "12346" })(
        inbound({ url, body, headers: { ...form, "x-twilio-signature": published } })
      )
    ).toBe(false)
  })

  it("The published Twilio example is refused with another spelling of the signature or without one", () => {
    expect(posted(url, body, Buffer.from(published, "base64").toString("hex"))).toBe(false)
    expect(posted(url, body, published.slice(0, -1))).toBe(false)
    expect(posted(url, body, ` ${published}`)).toBe(false)
    expect(posted(url, body, "")).toBe(false)
    expect(posted(url, body, undefined)).toBe(false)
    expect(posted(url, body, [published, published])).toBe(false)
  })

  it("Twilio verification refuses a body that is not a form unless its digest is in the URL", () => {
    const headers = { "x-twilio-signature": getExpectedTwilioSignature(token, url, {}) }
    expect(check(inbound({ url, headers }))).toBe(true)
    expect(check(inbound({ url, headers, body: "{}" }))).toBe(false)
    expect(check(inbound({ url, headers: { ...headers, "content-type": "text/plain" }, body }))).toBe(false)
    expect(check(inbound({ url, headers: { ...headers, ...form }, body: new Uint8Array([0xff]) }))).toBe(false)
  })

  it("Twilio verification does not read invalid UTF-8 as other text", () => {
    const headers = { ...form, "x-twilio-signature": getExpectedTwilioSignature(token, url, { Body: "\ufffd" }) }
    expect(check(inbound({ url, headers, body: "Body=\ufffd" }))).toBe(true)
    expect(check(inbound({ url, headers, body: Buffer.from("Body=\u00ff", "latin1") }))).toBe(false)
  })

  it("Twilio requests are not verified without a token", () => {
    expect(hasCheck("TWILIO", {})).toBe(false)
    expect(hasCheck("TWILIO", { webhook_secret_key: "" })).toBe(false)
  })
})

describe("TWILIO signatures of the official library", () => {
  const cases: ReadonlyArray<readonly [string, Params]> = [
    ["https://hooks.example/src_1", {}],
    ["https://hooks.example/src_1", { Body: "Grüße & mehr=1\n", a: "", Z: "last", "": "unnamed" }],
    ["https://hooks.example/src_1?x=%20a+b", { MediaUrl: ["b", "a", "b"], Empty: ["", ""] }],
    ["http://user:pw@hooks.example:8080/src_1", { A: "1" }],
    ["https://[::1]:8443/src_1", { A: "1" }]
  ]
  for (const [url, params] of cases) {
    it(`A Twilio signature of the official library is verified for ${url} ${JSON.stringify(params)}`, () => {
      const signature = getExpectedTwilioSignature(token, url, params)
      expect(validateRequest(token, signature, url, params)).toBe(true)
      expect(posted(url, encode(params), signature)).toBe(true)
      expect(posted(`${url}/`, encode(params), signature)).toBe(false)
    })
  }

  it("Twilio verification accepts the URL spellings that the library accepts, and no others", () => {
    const received = "https://hooks.example/src_1?q=it's&r=a+b%2Cc"
    const spellings = [
      received,
      received.replace("example/", "example:443/"),
      received.replace("example/", "example:80/"),
      received.replace("example/", "example:8443/"),
      received.replace("'", "%27"),
      received.replace("a+b", "a%20b"),
      received.replace("'", "%27").replace("a+b", "a%20b"),
      received.replace("https", "http")
    ]
    const accepted = spellings.map((signedUrl) => {
      const signature = getExpectedTwilioSignature(token, signedUrl, {})
      const verdict = posted(received, "", signature)
      expect(verdict, signedUrl).toBe(validateRequest(token, signature, received, {}))
      return verdict
    })
    expect(accepted).toContain(true)
    expect(accepted).toContain(false)

    const withPort = "https://hooks.example:443/src_1"
    expect(posted(withPort, "", getExpectedTwilioSignature(token, "https://hooks.example/src_1", {}))).toBe(true)
  })

  it("A JSON body from Twilio is covered by its digest in the URL", () => {
    const json = '{"MessageSid": "SM1", "text": "ü"}'
    const url = `https://hooks.example/src_1?bodySHA256=${getExpectedBodyHash(json)}`
    const signature = getExpectedTwilioSignature(token, url, {})
    const verify = (url: string, body: string | Uint8Array) =>
      check(inbound({ url, body, headers: { "content-type": "application/json", "x-twilio-signature": signature } }))
    expect(validateRequestWithBody(token, signature, url, json)).toBe(true)
    expect(verify(url, json)).toBe(true)
    expect(verify(url, JSON.stringify(JSON.parse(json)))).toBe(false)
    expect(verify(url, changed(json))).toBe(false)
    expect(verify(url, "")).toBe(false)
    expect(verify(`${url}&bodySHA256=${getExpectedBodyHash("{}")}`, "{}")).toBe(false)

    // Twice in a URL that Twilio has signed as it is.
    const twice = `${url}&bodySHA256=${getExpectedBodyHash("{}")}`
    const headers = { "x-twilio-signature": getExpectedTwilioSignature(token, twice, {}) }
    expect(check(inbound({ url: twice, body: json, headers }))).toBe(false)
    // A form is no way around the digest.
    const hollow = "https://hooks.example/src_1?bodySHA256="
    expect(
      check(
        inbound({
          url: hollow,
          body: "a=1",
          headers: { ...form, "x-twilio-signature": getExpectedTwilioSignature(token, hollow, { a: "1" }) }
        })
      )
    ).toBe(false)
  })

  it("A Twilio signature does not expire", () => {
    expect(
      check(inbound({ url, body, nowSeconds: now * 2, headers: { ...form, "x-twilio-signature": published } }))
    ).toBe(true)
  })
})
