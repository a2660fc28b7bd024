import { chain, edge, send, template } from "./Template.ts"

export const fallbackDestination = template({
  key: "fallback-destination",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Fall back to a second destination",
  description:
    "Sends each request to a first destination; what that refuses for good goes to a second, with the reason.",
  bindings: [
    { key: "primary", type: "destination", description: "Tried first" },
    { key: "fallback", type: "destination", description: "Takes what the first has refused" }
  ],
  sample: { id: "o_1", total: 120 },
  graph: ({ fallback, primary }) => ({
    steps: [
      send("primary", "First", primary, null, { on_error: "branch", retry: { interval: 1000, count: 2 } }),
      send("fallback", "Second", fallback, {
        body: {
          reason: "{{steps.primary.error.code}}: {{steps.primary.error.message}}",
          original: "{{trigger.body}}"
        }
      })
    ],
    edges: [...chain("primary"), edge("primary", "fallback", { source_port: "error" })]
  })
})
