import { expect } from "vitest"
import { it } from "../../test/support/it.ts"

it("Only paid orders are delivered, and each contains its total", async ({ gateway, target }) => {
  const transformation = await gateway.api("PUT", "/transformations", {
    name: "order-total",
    env: { CURRENCY: "EUR" },
    code: `addHandler("transform", (request) => {
      const { id, items } = request.body
      const total = items.reduce((sum, item) => sum + item.price * item.quantity, 0)
      request.body = { id, total, currency: process.env.CURRENCY }
      return request
    })`
  })
  const { source } = await gateway.route(target, {
    rules: [
      // Rules run in one order, whatever the order they are written in: the filter sees what the transformation made.
      { type: "transform", transformation_id: transformation.id },
      { type: "filter", body: { total: { $gt: 0 } } }
    ]
  })

  const post = async (order: object): Promise<string> => {
    const answer = await fetch(source.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(order)
    })
    return ((await answer.json()) as { request_id: string }).request_id
  }
  const free = await post({ id: 1, items: [{ price: 0, quantity: 3 }] })
  await post({ id: 2, items: [{ price: 5, quantity: 2 }] })

  const [delivery] = await target.next()
  expect(JSON.parse(String(delivery!.body))).toEqual({ id: 2, total: 10, currency: "EUR" })

  // What a rule did not let through is kept, with its cause.
  const { ignored_events } = await gateway.traced(free)
  expect(ignored_events).toMatchObject([{ cause: "FILTERED" }])
})
