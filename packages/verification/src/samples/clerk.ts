import type { Moment, Sample, Samples } from "./Sample.ts"

const event = (type: string, data: (now: Moment) => ReturnType<Sample["body"]>): Sample => ({
  event: type,
  body: (now) => ({
    data: data(now),
    event_attributes: { http_request: { client_ip: "192.0.2.1", user_agent: "Mozilla/5.0" } },
    instance_id: `ins_${now.id(27)}`,
    object: "event",
    timestamp: now.seconds * 1000,
    type
  })
})

const user = (now: Moment) => {
  const email = `idn_${now.id(27)}`
  return {
    id: `user_${now.id(27)}`,
    object: "user",
    first_name: "Ada",
    last_name: "Lovelace",
    username: null,
    email_addresses: [
      {
        id: email,
        object: "email_address",
        email_address: "ada@example.com",
        linked_to: [],
        verification: { status: "verified", strategy: "ticket" }
      }
    ],
    primary_email_address_id: email,
    phone_numbers: [],
    external_accounts: [],
    external_id: null,
    password_enabled: true,
    two_factor_enabled: false,
    public_metadata: {},
    private_metadata: {},
    unsafe_metadata: {},
    created_at: now.seconds * 1000,
    updated_at: now.seconds * 1000,
    last_sign_in_at: null
  }
}

export const clerk: Samples = {
  type: "CLERK",
  documentation: "https://clerk.com/docs/guides/development/webhooks/overview",
  posts: "json",
  samples: [
    event("user.created", user),
    event("user.updated", user),
    event("user.deleted", (now) => ({ id: `user_${now.id(27)}`, object: "user", deleted: true }))
  ]
}
