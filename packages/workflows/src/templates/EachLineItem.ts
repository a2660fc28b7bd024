import { chain, send, template } from "./Template.ts"

export const eachLineItem = template({
  key: "each-line-item",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Send each line of an order",
  description:
    "Sends one request for each line of an order, one after the other, and goes on past a line that is refused.",
  bindings: [{ key: "warehouse", type: "destination", description: "Takes the lines" }],
  sample: {
    id: "o_1",
    lines: [
      { sku: "A-1", quantity: 2 },
      { sku: "B-7", quantity: 1 }
    ]
  },
  graph: ({ warehouse }) => ({
    steps: [
      {
        id: "has_lines",
        kind: "filter",
        name: "With lines",
        config: { conditions: { body: { lines: { $exist: true } } } }
      },
      send(
        "line",
        "A line",
        warehouse,
        {
          body: {
            order: "{{trigger.body.id}}",
            number: "{{item_index}}",
            sku: "{{item.sku}}",
            quantity: "{{item.quantity ?? 1}}"
          }
        },
        { for_each: "{{trigger.body.lines}}", on_error: "continue" }
      )
    ],
    edges: chain("has_lines", "line")
  })
})
