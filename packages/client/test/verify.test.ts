import { Webhook } from "standardwebhooks"
import { describe, expect, it } from "vitest"
import { prepareSigningSecret, signDelivery } from "../../outbound-auth/src/DeliverySignature.ts"
import { verify, type WebhookHeaders, WebhookVerificationError } from "../src/verify.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const payload = '{"test": 2432232314}'
const id = "msg_p5jXN8AQM9LWM0D4loKWxJek"

/** What the reference implementation signs. */
const signed = (body: string, at = new Date(), by = new Webhook(secret)) => ({
  "webhook-id": id,
  "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
  "webhook-signature": by.sign(id, at, body)
})

const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1_000)

describe("Webhook verification", () => {
  it("Verification accepts a delivery that the reference implementation of Standard Webhooks has signed", async () => {
    const at = ago(10)
    const expected = { id, at: new Date(Math.floor(at.getTime() / 1_000) * 1_000) }
    expect(await verify(payload, signed(payload, at), secret)).toEqual(expected)
    expect(await verify(new TextEncoder().encode(payload), new Headers(signed(payload, at)), secret)).toEqual(expected)
    const raw = "a-secret-of-my-own"
    const own = signed("ü", at, new Webhook(raw, { format: "raw" }))
    expect(await verify("ü", own, raw)).toEqual(expected)
  })

  it("Verification accepts header names in any case and one valid signature among several", async () => {
    const headers = signed(payload)
    const other = new Webhook("whsec_c2VjcmV0c2VjcmV0c2VjcmV0").sign(id, new Date(), payload)
    const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
    const several = `v2,xxx v1a,${"A".repeat(44)} ${other} v1,? ${headers["webhook-signature"]}`
    expect(await verify(payload, shouted, secret)).toMatchObject({ id })
    expect(await verify(payload, { ...headers, "webhook-signature": several }, secret)).toMatchObject({ id })
  })

  it("Verification accepts a binary delivery of the gateway signed with the new and the old secret", async () => {
    const prepared = (text: string, until: number | null = null) => {
      const result = prepareSigningSecret(text, until)
      if (result._tag === "Failure") throw new Error(result.failure)
      return result.success
    }
    const body = new Uint8Array([0xff, 0x00, 0xfe, 0x0a])
    const timestampSeconds = Math.floor(Date.now() / 1_000)
    const secrets = [prepared("pässword-of-mine"), prepared(secret, Date.now() + 60_000)] as const
    const headers: WebhookHeaders = { ...signDelivery({ secrets, webhookId: "evt_1", timestampSeconds, body }) }
    for (const by of ["pässword-of-mine", secret]) {
      expect(await verify(body, headers, by)).toEqual({ id: "evt_1", at: new Date(timestampSeconds * 1_000) })
    }
    await expect(verify(body, headers, "another-secret")).rejects.toThrow(WebhookVerificationError)
  })

  it.each<[string, string, WebhookHeaders, string, RegExp]>([
    ["another body", '{"test":1}', signed(payload), secret, /no signature/],
    ["another secret", payload, signed(payload), "whsec_c2VjcmV0c2VjcmV0c2VjcmV0", /no signature/],
    ["another id", payload, { ...signed(payload), "webhook-id": "msg_2" }, secret, /no signature/],
    ["an old timestamp", payload, signed(payload, ago(310)), secret, /too old/],
    ["a new timestamp", payload, signed(payload, ago(-310)), secret, /too new/],
    ["a timestamp that is none", payload, { ...signed(payload), "webhook-timestamp": "1e9" }, secret, /not one/],
    ["no id", payload, { ...signed(payload), "webhook-id": undefined }, secret, /webhook-id/],
    ["no signature", payload, { ...signed(payload), "webhook-signature": "" }, secret, /webhook-signature/],
    ["an empty signature", payload, { ...signed(payload), "webhook-signature": "v1," }, secret, /no signature/],
    ["a secret that is none", payload, signed(payload), "whsec_?", /the secret/],
    ["no secret", payload, signed(payload), "", /the secret/]
  ])("Verification refuses a delivery with %s", async (_, body, headers, by, message) => {
    const failure = await verify(body, headers, by).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(WebhookVerificationError)
    expect(String(failure)).toMatch(message)
  })
})
