import { expect } from "vitest"
import { it } from "./it.ts"

/** Samples of providers' events, sent to sources of a gateway. */

it("Trigger command sends a provider's event that its source verifies", async ({ gateway, tidegate }) => {
  const sourceOf = (type: string) =>
    gateway.api("POST", "/sources", {
      name: gateway.name(type),
      type,
      config: { auth: { webhook_secret_key: "whsec_of_a_sample" } }
    })
  const env = { TIDEGATE_SENDER_SECRET: "whsec_of_a_sample" }
  const stripe = await sourceOf("STRIPE")
  const twilio = await sourceOf("TWILIO")
  for (const [source, event] of [
    [stripe, "payment_intent.succeeded"],
    [twilio, "message.received"]
  ] as const) {
    const sent = await tidegate(["trigger", source.name, event, "--json"], { env })
    expect(sent).toMatchObject({ code: 0 })
    const { url } = JSON.parse(sent.said)
    expect(url).toBe(source.url)
    const [request] = (await gateway.api("GET", `/requests?source_id=${source.id}` as "/requests")).models
    expect(request).toMatchObject({ verified: true, status: "accepted" })
  }
  // The secret is needed by name, and a wrong one is refused by the gateway.
  const unsigned = await tidegate(["trigger", stripe.name, "invoice.paid", "--secret-env", "OF_STRIPE"])
  expect(unsigned).toMatchObject({ code: 2, complained: expect.stringContaining("into OF_STRIPE") })
  const wrong = await tidegate(["trigger", stripe.name, "invoice.paid"], { env: { TIDEGATE_SENDER_SECRET: "no" } })
  expect(wrong).toMatchObject({ code: 1, complained: expect.stringContaining("answered 401") })
  const plainSource = await gateway.source()
  expect(await tidegate(["trigger", plainSource.name, "orders/paid", "--provider", "shopify"])).toMatchObject({
    code: 0
  })
})

it("Trigger command lists events, and names the nearest one when there is no such event", async ({
  gateway,
  tidegate
}) => {
  const listed = await tidegate(["trigger", "--list"])
  expect(listed.said).toContain("STRIPE\tpayment_intent.succeeded\thttps://docs.stripe.com/")
  const source = await gateway.source()
  const refused = async (...words: ReadonlyArray<string>) => {
    const { code, complained } = await tidegate(["trigger", ...words])
    return [code, complained]
  }
  expect(await refused(source.name, "push", "--provider", "githup")).toEqual([
    2,
    expect.stringContaining("there are no events of GITHUP; did you mean github?")
  ])
  expect(await refused(source.name, "pusch", "--provider", "github")).toEqual([
    4,
    expect.stringContaining("did you mean push?")
  ])
  expect(await refused(source.name, "push")).toEqual([2, expect.stringContaining("--provider")])
  expect(await refused()).toEqual([2, expect.stringContaining("say which source")])
})
