import { chain, edge, format, send, template } from "./Template.ts"

export const largeOrderReview = template({
  key: "large-order-review",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Have large orders looked at",
  description: "Sends every order on, and tells people of those of 1,000 and more, with the sum of their lines.",
  bindings: [
    { key: "orders", type: "destination", description: "Takes every order" },
    { key: "review", type: "destination", description: 'Receives a message for each large order, as {"text": …}' }
  ],
  sample: { id: "o_1", total: 1200, lines: [{ price: 700 }, { price: 500 }] },
  graph: ({ orders, review }) => ({
    steps: [
      {
        id: "size",
        kind: "branch",
        name: "Size",
        config: {
          paths: [
            { key: "all", name: "Every order", rule: "always" },
            { key: "large", name: "Large ones", rule: "conditions", conditions: { body: { total: { $gte: 1000 } } } }
          ]
        }
      },
      send("order", "Order", orders),
      format(
        "summed",
        "Sum of the lines",
        "number.math",
        { values: "{{trigger.body.lines[].price}}" },
        { operation: "add" }
      ),
      send("review", "Review", review, {
        body: { text: "Order {{trigger.body.id}} of {{trigger.body.total}}, lines {{steps.summed.output.result}}" }
      })
    ],
    edges: [
      ...chain("size"),
      edge("size", "order", { source_port: "path_all" }),
      edge("size", "summed", { source_port: "path_large" }),
      edge("summed", "review")
    ]
  })
})
