import { describe, expect, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import { changed, checkOf, fixture, hasCheck, inbound, problemOf } from "./inbound.ts"

// fixtures/code/make.sh, with the openssl command line.
const signature: string = JSON.parse(fixture("vectors.json")).mandrill
const url = "https://hooks.example/src_1?tag=a"
const body = "z=%7B&mandrill_events=%5B%7B%22event%22%3A%22open%22%2C%22ts%22%3A1%7D%5D&event_type=message"
const form = { "content-type": "application/x-www-form-urlencoded" }
const check = checkOf("MAILCHIMP", { webhook_secret_key: "mandrill key" })

const verify = (over: { url?: string; body?: string; signature?: string | ReadonlyArray<string> | undefined }) =>
  check(
    inbound({
      url: over.url ?? url,
      body: over.body ?? body,
      headers: { ...form, "x-mandrill-signature": "signature" in over ? over.signature : signature }
    })
  )

describe("MAILCHIMP (transactional)", () => {
  it("Mandrill verification accepts what openssl signed, in any order and encoding of the form", () => {
    expect(verify({})).toBe(true)
    expect(verify({ body: body.split("&").toReversed().join("&").replaceAll("%5B", "[") })).toBe(true)
  })

  it("Mandrill verification refuses another URL, body, key or signature", () => {
    expect(verify({ url: `${url}/` })).toBe(false)
    expect(verify({ url: "https://hooks.example/src_1" })).toBe(false)
    expect(verify({ body: body.replace("open", "send") })).toBe(false)
    expect(verify({ body: `${body}&a=1` })).toBe(false)
    expect(verify({ body: `${body}&event_type=message` })).toBe(false)
    expect(verify({ body: "" })).toBe(false)
    expect(verify({ signature: changed(signature) })).toBe(false)
    expect(verify({ signature: Buffer.from(signature, "base64").toString("hex") })).toBe(false)
    expect(verify({ signature: "" })).toBe(false)
    expect(verify({ signature: undefined })).toBe(false)
    expect(verify({ signature: [signature, signature] })).toBe(false)
    expect(check(inbound({ url, body, headers: { "x-mandrill-signature": signature } }))).toBe(false)
    expect(
      checkOf("MAILCHIMP", { webhook_secret_key: "mandrill kez" })(
        inbound({ url, body, headers: { ...form, "x-mandrill-signature": signature } })
      )
    ).toBe(false)
  })

  it("Mandrill verification refuses a form in which a name occurs twice, even if it is signed", () => {
    const signed = createHmac("sha1", "mandrill key").update(`${url}a1a2`).digest("base64")
    expect(verify({ body: "a=1&a=2", signature: signed })).toBe(false)
    const once = createHmac("sha1", "mandrill key").update(`${url}a1`).digest("base64")
    expect(verify({ body: "a=1", signature: once })).toBe(true)
  })

  it("Mandrill settings refuse the publicly known test key", () => {
    expect(hasCheck("MAILCHIMP", { webhook_secret_key: "test-webhook" })).toBe(false)
    expect(problemOf("MAILCHIMP", "webhook_secret_key", "test-webhook")).not.toBeNull()
    expect(problemOf("MAILCHIMP", "webhook_secret_key", "test-webhook-2")).toBeNull()
    expect(hasCheck("MAILCHIMP", {})).toBe(false)
  })
})
