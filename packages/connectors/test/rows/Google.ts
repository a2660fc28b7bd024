import { authOf, tokenAddresses, tokenNotReached } from "./Auths.ts"
import type { Answered, ConformanceRow, Failures, Written } from "./Row.ts"

/** Google's APIs, which all say no in one way. */

const no = (status: number, name: string, more: object = {}): Answered => ({
  status,
  body: JSON.stringify({ error: { code: status, message: "no", status: name, ...more } })
})

const failures: Failures = {
  credentials: [
    { ...no(401, "UNAUTHENTICATED"), code: "AUTH_REJECTED", final: false },
    { ...no(403, "PERMISSION_DENIED"), code: "AUTH_REJECTED", final: false }
  ],
  tooMuch: [
    {
      ...no(429, "RESOURCE_EXHAUSTED", { details: [{ retryDelay: "31s" }] }),
      code: "BAD_RESPONSE",
      final: false,
      retryAfter: 31
    },
    {
      status: 403,
      body: JSON.stringify({ error: { code: 403, errors: [{ reason: "userRateLimitExceeded" }] } }),
      code: "BAD_RESPONSE",
      final: false
    }
  ],
  refused: [
    { ...no(400, "INVALID_ARGUMENT"), code: "BAD_RESPONSE", final: true },
    { ...no(404, "NOT_FOUND"), code: "BAD_RESPONSE", final: true },
    { status: 200, body: "{}", code: "BAD_RESPONSE", final: false }
  ],
  trouble: [{ ...no(503, "UNAVAILABLE"), code: "BAD_RESPONSE", final: false }]
}

/** A destination whose tokens are given out at an address. */
const tokensAt = (token_url: string): Written => ({
  config: {},
  auth_type: "OAUTH_REFRESH_TOKEN",
  auth: Object.assign({}, authOf("OAUTH_REFRESH_TOKEN"), { token_url })
})
const addresses: ConformanceRow["addresses"] = { "auth.token_url": ({ url }) => tokensAt(url) }

export const spreadsheet: ConformanceRow = {
  type: "SPREADSHEET",
  mock: (origin) => tokensAt(`${origin}/token`),
  accepted: { status: 200, body: JSON.stringify({ spreadsheetId: "x", updates: { updatedRows: 1 } }) },
  failures,
  addresses: { ...tokenAddresses({}), ...addresses },
  notReached: tokenNotReached,
  triedWith: "a mock server that @googleapis/sheets also calls"
}

export const mailbox: ConformanceRow = {
  type: "MAILBOX_EMAIL",
  mock: (origin) => tokensAt(`${origin}/token`),
  accepted: { status: 200, body: JSON.stringify({ id: "18c", threadId: "18c", labelIds: ["SENT"] }) },
  failures,
  addresses,
  notReached: tokenNotReached,
  triedWith: "a mock server that @googleapis/gmail also calls; messages are parsed by postal-mime"
}

export const gcpPubSub: ConformanceRow = {
  type: "GCP_PUBSUB",
  mock: (origin) => {
    const { config, ...tokens } = tokensAt(`${origin}/token`)
    return { config: { ...config, endpoint: origin }, ...tokens }
  },
  accepted: { status: 200, body: JSON.stringify({ messageIds: ["19916711285"] }) },
  failures: {
    ...failures,
    refused: [
      ...failures.refused.filter(({ status }) => status !== 404),
      { ...no(404, "NOT_FOUND"), code: "BAD_RESPONSE", final: false }
    ]
  },
  addresses: {
    ...tokenAddresses({}),
    ...addresses,
    endpoint: ({ url }) => ({ config: { endpoint: url }, auth_type: "NO_AUTH", auth: {} })
  },
  notReached: tokenNotReached,
  triedWith: "a mock server that @google-cloud/pubsub has also called"
}
