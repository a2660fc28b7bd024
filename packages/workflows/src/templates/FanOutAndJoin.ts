import { edge, send, template } from "./Template.ts"

export const fanOutAndJoin = template({
  key: "fan-out-and-join",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Fan out and report",
  description: "Sends each request to two systems at once, and when both have answered, what they answered to a third.",
  bindings: [
    { key: "first", type: "destination", description: "One system" },
    { key: "second", type: "destination", description: "The other system" },
    { key: "report", type: "destination", description: "Receives the answers of both" }
  ],
  sample: { id: "o_1", total: 120 },
  graph: ({ first, report, second }) => ({
    steps: [
      send("first", "First system", first, null, { on_error: "continue" }),
      send("second", "Second system", second, null, { on_error: "continue" }),
      send("report", "Report", report, {
        body: {
          id: "{{trigger.body.id}}",
          first: '{{steps.first.output.status ?? "failed"}}',
          second: '{{steps.second.output.status ?? "failed"}}'
        }
      })
    ],
    edges: [edge(null, "first"), edge(null, "second"), edge("first", "report"), edge("second", "report")]
  })
})
