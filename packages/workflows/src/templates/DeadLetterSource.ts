import { action, chain, edge, send, template } from "./Template.ts"

export const deadLetterSource = template({
  key: "dead-letter-source",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Keep what was refused in a source of its own",
  description:
    "Sends each request to a destination; what that refuses for good becomes a request of another source, where it can be looked at, routed and replayed.",
  bindings: [
    { key: "destination", type: "destination", description: "Where requests go" },
    { key: "dead_letters", type: "source", description: "Takes what was refused" }
  ],
  sample: { id: "o_1", total: 120 },
  graph: ({ dead_letters, destination }) => ({
    steps: [
      send("deliver", "Deliver", destination, null, {
        on_error: "branch",
        retry: { strategy: "exponential", interval: 2000, count: 4 }
      }),
      action("keep", "Keep", ["gateway", "publish"], {
        source_id: dead_letters,
        path: "/refused",
        body: {
          request_id: "{{trigger.request_id}}",
          error: "{{steps.deliver.error.code}}",
          message: "{{steps.deliver.error.message}}",
          original: "{{trigger.body}}"
        }
      })
    ],
    edges: [...chain("deliver"), edge("deliver", "keep", { source_port: "error" })]
  })
})
