import { describe, expect, it } from "@effect/vitest"
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
  it("Mailgun verification accepts what openssl signed", () => {
    expect(verify(good)).toBe(true)
    expect(verify({ ...good, timestamp: now })).toBe(true)
    expect(verifyWith("key-mailgun", new URLSearchParams({ ...good, event: "opened" }).toString(), form)).toBe(true)
  })

  it("Mailgun verification accepts a subaccount's event signed with the parent's key", () => {
    expect(verify({ ...good, signature: "0".repeat(64), "parent-signature": signature })).toBe(true)
    expect(verify({ ...good, signature: "0".repeat(64), "parent-signature": changed(signature) })).toBe(false)
  })

  it("Mailgun verification refuses another key, token, timestamp or signature", () => {
    expect(verifyWith("key-mailgum", JSON.stringify({ signature: good }))).toBe(false)
    expect(verify({ ...good, token: changed(token) })).toBe(false)
    expect(verify({ ...good, timestamp: String(now + 1) })).toBe(false)
    expect(verify({ ...good, signature: changed(signature) })).toBe(false)
    expect(verify({ ...good, signature: signature.toUpperCase() })).toBe(false)
    expect(verify({ ...good, signature: Buffer.from(signature, "hex").toString("base64") })).toBe(false)
    expect(verify({ ...good, signature: "" })).toBe(false)
  })

  it("Mailgun verification refuses missing members and members of another type", () => {
    for (const name of ["timestamp", "token", "signature"]) {
      for (const wrong of [undefined, null, "", 1.5, true, [], {}, [signature]]) {
        expect(verify({ ...good, [name]: wrong }), `${name} ${JSON.stringify(wrong)}`).toBe(false)
      }
    }
    for (const wrong of [undefined, null, [], [good], "signature", 1]) expect(verify(wrong)).toBe(false)
    for (const body of ["", "{", "null", "[]", '"signature"', JSON.stringify(good)]) {
      expect(verifyWith("key-mailgun", body)).toBe(false)
    }
    expect(hasCheck("MAILGUN", {})).toBe(false)
  })

  it("Mailgun verification refuses a form in which a signed name occurs twice", () => {
    const twice = `${new URLSearchParams(good).toString()}&token=${token}`
    expect(verifyWith("key-mailgun", twice, form)).toBe(false)
  })

  it("Mailgun verification accepts a multipart form with attachments and refuses a forged one", async () => {
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
    expect(await post([...mail, ...signed])).toBe(true)
    expect(await post([...signed, ...mail])).toBe(true)
    expect(await post([...mail, ...Object.entries({ ...good, token: changed(token) })])).toBe(false)
    expect(await post([...mail, ...signed, ["token", token]])).toBe(false)
    expect(await post([...mail, ["timestamp", timestamp], ["token", token]])).toBe(false)
    // A file is no field, whatever it is called.
    expect(
      await post([
        ["timestamp", timestamp],
        ["token", token],
        ["signature", new File([signature], "s")]
      ])
    ).toBe(false)
    expect(await post([...signed, ["token", new File(["x"], "t")]])).toBe(true)
  })

  it("Mailgun verification refuses replays outside the tolerance, and digits moved from token to timestamp", () => {
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
      expect(verify({ timestamp: at, token, signature: signed }), `${offset}`).toBe(expected)
    }
    const moved = createHmac("sha256", "key-mailgun").update(`${timestamp}5${token}`).digest("hex")
    expect(verify({ timestamp, token: `5${token}`, signature: moved })).toBe(true)
    expect(verify({ timestamp: `${timestamp}5`, token, signature: moved })).toBe(false)
  })
})
