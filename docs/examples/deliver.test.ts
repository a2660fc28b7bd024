import { expect } from "vitest"
import { it } from "../../test/support/it.ts"

it("A webhook is delivered, and its trace shows the successful attempt", async ({ gateway, target }) => {
  // Where webhooks come in, where they go, and what connects the two.
  const source = await gateway.api("PUT", "/sources", { name: "shop" })
  const destination = await gateway.api("PUT", "/destinations", {
    name: "orders-api",
    config: { url: `${target.origin}/hooks` }
  })
  await gateway.api("PUT", "/connections", {
    name: "shop-to-orders",
    source_id: source.id,
    destination_id: destination.id
  })

  // A sender posts to the source's URL. The answer comes once the request is stored.
  const answer = await fetch(`${source.url}/created?shop=7`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ order: 1 })
  })
  expect(answer.status).toBe(200)
  const { request_id } = (await answer.json()) as { request_id: string }

  // The destination gets the same body, and what stood behind the source's URL.
  const [delivery] = await target.next()
  expect(delivery).toMatchObject({ method: "POST", url: "/hooks/created?shop=7" })
  expect(JSON.parse(String(delivery!.body))).toEqual({ order: 1 })

  // The trace has the request, its event, and each attempt to deliver it, soon after it was delivered.
  const trace = await gateway.eventually("the delivery is recorded", async () => {
    const trace = await gateway.api("GET", `/requests/${request_id}/trace`)
    return trace.events[0]?.status === "SUCCESSFUL" ? trace : null
  })
  expect(trace.events).toMatchObject([{ status: "SUCCESSFUL" }])
  expect(trace.attempts).toMatchObject([{ status: "SUCCESSFUL", response_status: 200 }])
})
