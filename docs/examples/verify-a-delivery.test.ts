import { Webhook } from "standardwebhooks"
import { expect } from "vitest"
import { it } from "../../test/support/it.ts"

it("The Standard Webhooks library verifies the signature of a delivery", async ({ gateway, target }) => {
  const { source } = await gateway.route(target, { destination: { auth_type: "SERVICE_SIGNATURE" } })
  await fetch(source.url, { method: "POST", body: '{"order":1}' })

  const [delivery] = await target.next()
  const headers = Object.fromEntries(
    ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => [name, String(delivery!.headers[name])])
  )
  const webhook = new Webhook(await gateway.signingSecret(), { format: "raw" })
  expect(webhook.verify(String(delivery!.body), headers)).toEqual({ order: 1 })
  expect(() => webhook.verify('{"order":2}', headers)).toThrow("No matching signature")
})
