import { Stripe } from "stripe"
import { expect } from "vitest"
import { it } from "../../test/support/it.ts"

it("A Stripe source accepts genuine requests and stores forged ones as rejected", async ({ gateway }) => {
  const secret = "whsec_from_the_stripe_dashboard"
  const source = await gateway.api("PUT", "/sources", {
    name: "payments",
    type: "STRIPE",
    config: { auth: { webhook_secret_key: secret } }
  })

  const payload = JSON.stringify({ id: "evt_1", type: "charge.succeeded" })
  const signature = new Stripe("sk_test_none").webhooks.generateTestHeaderString({ payload, secret })
  const post = (body: string) =>
    fetch(source.url, {
      method: "POST",
      headers: { "content-type": "application/json", "stripe-signature": signature },
      body
    })

  expect((await post(payload)).status).toBe(200)

  // The signature is of another body.
  const forged = await post(payload.replace("charge.succeeded", "charge.refunded"))
  expect(forged.status).toBe(401)
  expect(await forged.json()).toMatchObject({ code: "SOURCE_AUTH_FAILED" })

  // Nothing vanishes: the forged one is a request too, with the cause.
  const { models } = await gateway.api("GET", `/requests?source_id=${source.id}&status=rejected`)
  expect(models).toMatchObject([{ verified: false, rejection_cause: "SOURCE_AUTH_FAILED" }])
})
