import { chain, send, template } from "./Template.ts"

export const delayedFollowUp = template({
  key: "delayed-follow-up",
  version: 1,
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "Follow up a day later",
  description: "Waits a day after a sign-up that has an e-mail address, and then tells another system of it.",
  bindings: [{ key: "mailer", type: "destination", description: "Sends the follow-up" }],
  sample: { type: "user.created", user: { id: "usr_1", email: "ada@example.com" } },
  graph: ({ mailer }) => ({
    steps: [
      {
        id: "has_email",
        kind: "filter",
        name: "With an address",
        config: { conditions: { body: { user: { email: { $exist: true } } } } }
      },
      { id: "a_day", kind: "delay", name: "A day", config: { mode: "for", amount: 1, unit: "days" } },
      send(
        "follow_up",
        "Follow up",
        mailer,
        { body: { to: "{{trigger.body.user.email}}", signed_up_at: "{{trigger.received_at}}" } },
        { retry: { strategy: "exponential", interval: 60_000, count: 5 } }
      )
    ],
    edges: chain("has_email", "a_day", "follow_up")
  })
})
