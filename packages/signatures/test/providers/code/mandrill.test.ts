import { assert, describe, it } from "@effect/vitest"
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
  it("verifies what openssl signed, in any order and encoding of the form", () => {
    assert.isTrue(verify({}))
    assert.isTrue(verify({ body: body.split("&").toReversed().join("&").replaceAll("%5B", "[") }))
  })

  it("refuses another URL, body, key or signature", () => {
    assert.isFalse(verify({ url: `${url}/` }))
    assert.isFalse(verify({ url: "https://hooks.example/src_1" }))
    assert.isFalse(verify({ body: body.replace("open", "send") }))
    assert.isFalse(verify({ body: `${body}&a=1` }))
    assert.isFalse(verify({ body: `${body}&event_type=message` }))
    assert.isFalse(verify({ body: "" }))
    assert.isFalse(verify({ signature: changed(signature) }))
    assert.isFalse(verify({ signature: Buffer.from(signature, "base64").toString("hex") }))
    assert.isFalse(verify({ signature: "" }))
    assert.isFalse(verify({ signature: undefined }))
    assert.isFalse(verify({ signature: [signature, signature] }))
    assert.isFalse(check(inbound({ url, body, headers: { "x-mandrill-signature": signature } })))
    assert.isFalse(
      checkOf("MAILCHIMP", { webhook_secret_key: "mandrill kez" })(
        inbound({ url, body, headers: { ...form, "x-mandrill-signature": signature } })
      )
    )
  })

  it("refuses a form in which a name occurs twice, even one that was signed so", () => {
    const signed = createHmac("sha1", "mandrill key").update(`${url}a1a2`).digest("base64")
    assert.isFalse(verify({ body: "a=1&a=2", signature: signed }))
    const once = createHmac("sha1", "mandrill key").update(`${url}a1`).digest("base64")
    assert.isTrue(verify({ body: "a=1", signature: once }))
  })

  it("the key that everybody knows is no key", () => {
    assert.isFalse(hasCheck("MAILCHIMP", { webhook_secret_key: "test-webhook" }))
    assert.isNotNull(problemOf("MAILCHIMP", "webhook_secret_key", "test-webhook"))
    assert.isNull(problemOf("MAILCHIMP", "webhook_secret_key", "test-webhook-2"))
    assert.isFalse(hasCheck("MAILCHIMP", {}))
  })
})
