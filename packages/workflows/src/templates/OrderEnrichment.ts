import { action, chain, send, template } from "./Template.ts"

export const orderEnrichment = template({
  key: "order-enrichment",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Enrich an order",
  description:
    "Asks another system for the customer of each order, and sends both on; without an answer the order goes alone.",
  bindings: [
    { key: "customers", type: "url", description: "Answers JSON about a customer, whose id it is given as `?id=`" },
    { key: "destination", type: "destination", description: "Where the enriched order goes" }
  ],
  sample: { id: "o_1", customer_id: "cus_1", total: 120 },
  graph: ({ customers, destination }) => ({
    steps: [
      action(
        "lookup",
        "Ask for the customer",
        ["http", "request"],
        { method: "GET", url: customers, query: { id: "{{trigger.body.customer_id}}" } },
        { timeout_ms: 10_000, on_error: "continue", retry: { interval: 1000, count: 2 } }
      ),
      send("deliver", "Deliver", destination, {
        body: { order: "{{trigger.body}}", customer: "{{steps.lookup.output.body ?? null}}" }
      })
    ],
    edges: chain("lookup", "deliver")
  })
})
