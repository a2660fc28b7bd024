import { Webhook } from "standardwebhooks"
import { expect } from "vitest"
import { it } from "../../test/support/it.ts"

it("signs deliveries so that a target can check them with the Standard Webhooks library", async ({
  gateway,
  target
}) => {
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
