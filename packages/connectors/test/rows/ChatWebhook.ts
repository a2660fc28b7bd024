import type { ConformanceRow } from "./Row.ts"

const token = "t0ken-of-a-webhook"

export const chatWebhook: ConformanceRow = {
  type: "CHAT_WEBHOOK",
  mock: (origin) => ({ config: { url: `${origin}/webhooks/1/${token}` } }),
  accepted: { status: 200, body: '{"id":"1"}' },
  failures: {
    credentials: [{ status: 401, body: '{"code":50027}', code: "AUTH_REJECTED", final: false }],
    tooMuch: [{ status: 429, body: '{"retry_after":1.2}', code: "BAD_RESPONSE", final: false, retryAfter: 2 }],
    refused: [
      { status: 404, body: '{"code":10015}', code: "BAD_RESPONSE", final: true },
      { status: 400, body: '{"code":50006}', code: "BAD_RESPONSE", final: true }
    ],
    trouble: [{ status: 502, code: "BAD_RESPONSE", final: false }]
  },
  // The API fetches pictures: from the public network alone.
  addresses: {
    url: ({ url }) => ({ config: { url } }),
    avatar_url: ({ url }) => ({ config: { avatar_url: url } })
  },
  secrets: [token],
  triedWith: "a mock server made from the provider's documentation"
}
