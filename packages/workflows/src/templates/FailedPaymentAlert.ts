import { chain, format, send, template } from "./Template.ts"

export const failedPaymentAlert = template({
  key: "failed-payment-alert",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Alert on a failed payment",
  description: "Sends a short text about each payment that has failed, with its amount as people read it.",
  bindings: [{ key: "alerts", type: "destination", description: 'Where the text goes, as {"text": …}' }],
  sample: {
    type: "payment.failed",
    id: "pay_1",
    amount: "1234.5",
    currency: "EUR",
    customer: { name: "ada lovelace" }
  },
  graph: ({ alerts }) => ({
    steps: [
      {
        id: "only_failed",
        kind: "filter",
        name: "Failed payments only",
        config: { conditions: { body: { type: { $in: ["payment.failed", "charge.failed"] } } } }
      },
      format(
        "amount",
        "Amount",
        "number.currency",
        { input: "{{trigger.body.amount}}", currency: '{{trigger.body.currency ?? "USD"}}' },
        { pattern: "¤#,##0.00" }
      ),
      format("customer", "Customer", "text.titlecase", { input: '{{trigger.body.customer.name ?? "unknown"}}' }),
      send(
        "alert",
        "Alert",
        alerts,
        {
          body: {
            text: "Payment {{trigger.body.id}} of {{steps.amount.output.result}} by {{steps.customer.output.result}} has failed"
          }
        },
        { retry: { strategy: "exponential", interval: 2000, count: 3 } }
      )
    ],
    edges: chain("only_failed", "amount", "customer", "alert")
  })
})
