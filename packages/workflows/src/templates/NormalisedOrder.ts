import { chain, format, send, template } from "./Template.ts"

export const normalisedOrder = template({
  key: "normalised-order",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Normalise an order",
  description: "Writes an order's amount, time and e-mail address in one form, and sends the result on.",
  bindings: [{ key: "destination", type: "destination", description: "Where the normalised order goes" }],
  sample: { id: "o_1", total: "1.234,50", created: "2026-03-01 10:00", email: "  Ada@Example.com " },
  graph: ({ destination }) => ({
    steps: [
      format(
        "total",
        "Total with a point",
        "number.format",
        { input: "{{trigger.body.total}}" },
        { input_decimal_mark: ",", output_format: "2", grouping: "none" }
      ),
      format(
        "time",
        "Time in ISO 8601",
        "date.format",
        { input: "{{trigger.body.created}}", to_timezone: "UTC" },
        { to_format: "YYYY-MM-DDTHH:mm:ssZ" }
      ),
      format("trimmed", "Without space", "text.trim", { input: "{{trigger.body.email}}" }),
      format("email", "In lower case", "text.lowercase", { input: "{{steps.trimmed.output.result}}" }),
      send("deliver", "Deliver", destination, {
        body: {
          id: "{{trigger.body.id}}",
          total: "{{steps.total.output.result}}",
          created_at: "{{steps.time.output.result}}",
          email: "{{steps.email.output.result}}"
        }
      })
    ],
    edges: chain("total", "time", "trimmed", "email", "deliver")
  })
})
