import { assert, describe, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import { changed, checkOf, fixture, hasCheck, inbound, now } from "./inbound.ts"

// fixtures/code/make.sh, with the openssl command line.
const signature: string = JSON.parse(fixture("vectors.json")).mailgun
const token = "e0b5477167110d68991efc6b9f89f0a11066af27834600e123"
const timestamp = String(now)
const good = { timestamp, token, signature }

const verifyWith = (key: string, body: string, headers = {}) =>
  checkOf("MAILGUN", { webhook_secret_key: key })(inbound({ body, headers }))
const verify = (signature: unknown) =>
  verifyWith("key-mailgun", JSON.stringify({ signature, "event-data": { event: "opened" } }))
const form = { "content-type": "application/x-www-form-urlencoded" }

describe("MAILGUN", () => {
  it("verifies what openssl signed", () => {
    assert.isTrue(verify(good))
    assert.isTrue(verify({ ...good, timestamp: now }))
    assert.isTrue(verifyWith("key-mailgun", new URLSearchParams({ ...good, event: "opened" }).toString(), form))
  })

  it("verifies an event of a subaccount by the key of its parent", () => {
    assert.isTrue(verify({ ...good, signature: "0".repeat(64), "parent-signature": signature }))
    assert.isFalse(verify({ ...good, signature: "0".repeat(64), "parent-signature": changed(signature) }))
  })

  it("refuses another key, token, timestamp or signature", () => {
    assert.isFalse(verifyWith("key-mailgum", JSON.stringify({ signature: good })))
    assert.isFalse(verify({ ...good, token: changed(token) }))
    assert.isFalse(verify({ ...good, timestamp: String(now + 1) }))
    assert.isFalse(verify({ ...good, signature: changed(signature) }))
    assert.isFalse(verify({ ...good, signature: signature.toUpperCase() }))
    assert.isFalse(verify({ ...good, signature: Buffer.from(signature, "hex").toString("base64") }))
    assert.isFalse(verify({ ...good, signature: "" }))
  })

  it("refuses what is missing or of another kind", () => {
    for (const name of ["timestamp", "token", "signature"]) {
      for (const wrong of [undefined, null, "", 1.5, true, [], {}, [signature]]) {
        assert.isFalse(verify({ ...good, [name]: wrong }), `${name} ${JSON.stringify(wrong)}`)
      }
    }
    for (const wrong of [undefined, null, [], [good], "signature", 1]) assert.isFalse(verify(wrong))
    for (const body of ["", "{", "null", "[]", '"signature"', JSON.stringify(good)]) {
      assert.isFalse(verifyWith("key-mailgun", body))
    }
    assert.isFalse(hasCheck("MAILGUN", {}))
  })

  it("refuses a form in which a signed name occurs twice", () => {
    const twice = `${new URLSearchParams(good).toString()}&token=${token}`
    assert.isFalse(verifyWith("key-mailgun", twice, form))
  })

  it("verifies the multipart form of a mail with attachments, and refuses a forged one", async () => {
    const post = async (fields: ReadonlyArray<readonly [string, string | Blob]>) => {
      const data = new FormData()
      for (const [name, value] of fields) data.append(name, value)
      const encoded = new Response(data)
      const type = encoded.headers.get("content-type")!
      const body = new Uint8Array(await encoded.arrayBuffer())
      return checkOf("MAILGUN", { webhook_secret_key: "key-mailgun" })(
        inbound({ body, headers: { "content-type": type } })
      )
    }
    const attachment = new File([Buffer.alloc(300_000, 7), "\r\n--not-the-boundary\r\n"], 'a "b".pdf')
    const mail = [
      ["subject", "größe"],
      ["attachment-1", attachment],
      ["body-plain", "x".repeat(100_000)]
    ] as const
    const signed = Object.entries(good)
    assert.isTrue(await post([...mail, ...signed]))
    assert.isTrue(await post([...signed, ...mail]))
    assert.isFalse(await post([...mail, ...Object.entries({ ...good, token: changed(token) })]))
    assert.isFalse(await post([...mail, ...signed, ["token", token]]))
    assert.isFalse(await post([...mail, ["timestamp", timestamp], ["token", token]]))
    // A file is no field, whatever it is called.
    assert.isFalse(
      await post([
        ["timestamp", timestamp],
        ["token", token],
        ["signature", new File([signature], "s")]
      ])
    )
    assert.isTrue(await post([...signed, ["token", new File(["x"], "t")]]))
  })

  it("refuses a replay outside the tolerance, and digits moved from the token into the timestamp", () => {
    for (const [offset, expected] of [
      [-8 * 3600 - 300, true],
      [-301, true],
      [300, true],
      [-8 * 3600 - 301, false],
      [301, false]
    ] as const) {
      const at = String(now + offset)
      const signed = createHmac("sha256", "key-mailgun")
        .update(at + token)
        .digest("hex")
      assert.strictEqual(verify({ timestamp: at, token, signature: signed }), expected, `${offset}`)
    }
    const moved = createHmac("sha256", "key-mailgun").update(`${timestamp}5${token}`).digest("hex")
    assert.isTrue(verify({ timestamp, token: `5${token}`, signature: moved }))
    assert.isFalse(verify({ timestamp: `${timestamp}5`, token, signature: moved }))
  })
})
