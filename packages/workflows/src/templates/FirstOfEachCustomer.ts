import { action, chain, edge, send, template } from "./Template.ts"

export const firstOfEachCustomer = template({
  key: "first-of-each-customer",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Welcome each customer once",
  description: "Counts the orders of each customer, and tells another system of the first one only.",
  bindings: [{ key: "welcome", type: "destination", description: "Receives a message for each new customer" }],
  sample: { id: "o_1", customer: { id: "cus_1", email: "ada@example.com" } },
  graph: ({ welcome }) => ({
    steps: [
      {
        id: "has_customer",
        kind: "filter",
        name: "With a customer",
        config: { conditions: { body: { customer: { id: { $exist: true } } } } }
      },
      action("count", "Orders so far", ["storage", "increment"], { key: "orders of {{trigger.body.customer.id}}" }),
      send("welcome", "Welcome", welcome, {
        body: { customer: "{{trigger.body.customer}}", first_order: "{{trigger.body.id}}" }
      })
    ],
    edges: [
      ...chain("has_customer", "count"),
      edge("count", "welcome", { condition: { steps: { count: { output: { value: 1 } } } } })
    ]
  })
})
