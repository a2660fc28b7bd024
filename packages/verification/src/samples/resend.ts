import type { Moment, Sample, Samples } from "./Sample.ts"

const event = (type: string, more: (now: Moment) => ReturnType<Sample["body"]> = () => ({})): Sample => ({
  event: type,
  body: (now) => ({
    type,
    created_at: now.iso,
    data: {
      created_at: now.iso,
      email_id: now.uuid(),
      from: "Example <orders@example.com>",
      to: ["ada@example.com"],
      subject: "Your order",
      ...more(now)
    }
  })
})

export const resend: Samples = {
  type: "RESEND",
  documentation: "https://resend.com/docs/dashboard/webhooks/event-types",
  posts: "json",
  samples: [
    event("email.sent"),
    event("email.delivered"),
    event("email.bounced", () => ({
      bounce: { message: "The recipient's mailbox does not exist.", subType: "General", type: "Permanent" }
    })),
    event("email.complained")
  ]
}
